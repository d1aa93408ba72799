// A table as CSV (RFC 4180). A text that a spreadsheet would take for a formula gets a ' in front, as
// in the command line's CSV; a number stays a number, also a negative one.

export type Cell = string | number | null | undefined;

export function field(cell: Cell): string {
    if (cell == null) return "";
    if (typeof cell === "number") return Number.isFinite(cell) ? String(cell) : "";
    let text = cell;
    if (/^[=+\-@\t\r]/.test(text)) text = "'" + text;
    return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
}

export const csv = (head: string[], rows: Cell[][]): string =>
    [head, ...rows].map((row) => row.map(field).join(",") + "\r\n").join("");

export function download(name: string, text: string): void {
    const url = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
    const link = document.createElement("a");
    link.href = url;
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
