// The page begins here: its look, and what runs (app.tsx, which views/others.ts knows too).

import "./style.css";
import "./app";
