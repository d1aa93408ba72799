export function FleetView() { return <p>FleetView</p>; }
