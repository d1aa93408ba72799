export function FindingsView() { return <p>FindingsView</p>; }
