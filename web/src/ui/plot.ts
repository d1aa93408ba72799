// uPlot, in a file of its own that comes when lines are drawn: it is as large as everything that the first view needs.

export { default } from "uplot";
