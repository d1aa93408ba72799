// A table of figures: aligned, sortable by heading, exportable as CSV. The order is the caller's to
// keep (in the address), so that a table that was sent looks the same to whoever opens it.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Cell, csv, download } from "../csv";
import { digits, plural } from "../format";

export interface Column<T> {
    id: string;
    heading: string;
    title?: string;
    text?: boolean; // left aligned
    wide?: boolean; // takes what is left
    name?: boolean; // of something that strangers named: wraps anywhere, and keeps a width
    minor?: boolean; // left out on narrow screens
    cell: (row: T) => ComponentChildren;
    value: (row: T) => Cell; // what is sorted by and exported
    foot?: ComponentChildren;
}

interface Props<T> {
    name: string; // of the table: its caption, and the file that is exported
    columns: Column<T>[];
    rows: T[];
    sort?: string; // "cost", "-cost" (the other way round)
    onSort?: (sort: string) => void;
    rowKey: (row: T) => string;
    total?: number; // rows that there are, where not all are here
    shown?: number; // rows shown at first
    title?: string; // a heading over the table
    caption?: ComponentChildren; // beside the heading
    tools?: ComponentChildren; // beside the export
    foot?: boolean;
    rowClass?: (row: T) => string | undefined;
}

export const compare = (a: Cell, b: Cell): number => {
    if (a == null || b == null) return a == null ? (b == null ? 0 : 1) : -1; // not known is last
    if (typeof a === "number" && typeof b === "number") return b - a; // largest first
    return String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0;
};

export function sorted<T>(rows: T[], columns: Column<T>[], sort: string | undefined): T[] {
    const back = sort?.startsWith("-");
    const column = columns.find((c) => c.id === (back ? sort!.slice(1) : sort));
    if (!column) return rows;
    const keyed = rows.map((row, i) => ({ row, i, value: column.value(row) }));
    keyed.sort((a, b) => {
        const order = compare(a.value, b.value);
        const unknown = a.value == null || b.value == null;
        return (back && !unknown ? -order : order) || a.i - b.i;
    });
    return keyed.map((k) => k.row);
}

const kindOf = <T,>(c: Column<T>) =>
    [c.text && "text", c.minor && "minor", c.wide && "wide", c.name && "name"].filter(Boolean).join(" ") || undefined;

export function Table<T>(props: Props<T>) {
    const { columns, onSort, name } = props;
    const [own, setOwn] = useState<string | undefined>(undefined);
    const [all, setAll] = useState(false);
    const sort = onSort ? props.sort : own ?? props.sort;
    const rows = sorted(props.rows, columns, sort);
    const shown = all ? rows : rows.slice(0, props.shown ?? 100);
    const choose = (id: string) => (onSort ?? setOwn)(sort === id ? "-" + id : id);
    const direction = (id: string) => (sort === id || sort === "-" + id
        ? (rows.length > 0 && (typeof columns.find((c) => c.id === id)!.value(rows[0]) === "number") !== (sort === "-" + id) ? "descending" : "ascending")
        : undefined);
    return (
        <div class="table">
            <div class="table-head">
                {props.title && <h2>{props.title}</h2>}
                <div class="table-title">{props.caption}</div>
                {props.tools}
                <button type="button" class="plain" onClick={() =>
                    download(name.replace(/[^a-z0-9]+/gi, "-").toLowerCase() + ".csv",
                        csv(columns.map((c) => c.id), rows.map((row) => columns.map((c) => c.value(row)))))}
                    aria-label={`Save ${name} as CSV`}>CSV</button>
            </div>
            <div class="table-scroll" tabIndex={0} role="region" aria-label={name}>
                <table>
                    <caption class="unseen">{name}</caption>
                    <thead>
                        <tr>
                            {columns.map((c) => (
                                <th key={c.id} scope="col" aria-sort={direction(c.id)}
                                    class={kindOf(c)}>
                                    <button type="button" class="heading" title={c.title} onClick={() => choose(c.id)}>
                                        {c.heading}
                                        <span class="order" aria-hidden="true">
                                            {direction(c.id) === "ascending" ? "↑" : direction(c.id) ? "↓" : ""}
                                        </span>
                                    </button>
                                </th>
                            ))}
                        </tr>
                    </thead>
                    <tbody>
                        {shown.map((row) => (
                            <tr key={props.rowKey(row)} class={props.rowClass?.(row)}>
                                {columns.map((c, i) => {
                                    const kind = kindOf(c);
                                    return i === 0
                                        ? <th key={c.id} scope="row" class={kind}>{c.cell(row)}</th>
                                        : <td key={c.id} class={kind}>{c.cell(row)}</td>;
                                })}
                            </tr>
                        ))}
                    </tbody>
                    {props.foot && (
                        <tfoot>
                            <tr>
                                {columns.map((c, i) => {
                                    const kind = kindOf(c);
                                    return i === 0 ? <th key={c.id} scope="row" class={kind}>{c.foot}</th> : <td key={c.id} class={kind}>{c.foot}</td>;
                                })}
                            </tr>
                        </tfoot>
                    )}
                </table>
            </div>
            {(rows.length > shown.length || (props.total ?? 0) > rows.length) && (
                <p class="more">
                    {`${digits(shown.length)} of ${plural(Math.max(props.total ?? 0, rows.length), "row")}`}
                    {rows.length > shown.length &&
                        <button type="button" class="plain" onClick={() => setAll(true)}>Show {rows.length === (props.total ?? rows.length) ? "all" : digits(rows.length)}</button>}
                </p>
            )}
        </div>
    );
}
