export function Detail() { return <p>Detail</p>; }
