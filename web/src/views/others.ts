// The views that are not the first: a file of their own in the dashboard, so that a browser reads a third of the page's
// scripts before the overview stands. It comes when the browser has nothing else to do, or when it is asked for.

import "../app"; // so that what both have is in the first file, and not in a third
export { Detail } from "./detail";
export { Explore } from "./explore";
export { FindingsView } from "./findings";
export { FleetView } from "./fleet";
export { IdleView } from "./idle";
export { Trust } from "./trust";
