export function Explore() { return <p>Explore</p>; }
