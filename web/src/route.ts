// Every view is an address: "#/explore?by=team,workload&filter=cluster=prod&sort=cost". All that a view
// shows follows from it (window, keys, filters, sort, zone, what is opened), so that it can be sent,
// reloaded and gone back to. The hash is used because a report that is opened from a disk has one too.

export interface Route {
    view: string; // "overview", "explore", …
    path: string[]; // what follows: ["prod", "gpu-7"]
    window: string; // as --window takes it; "": what the server or the file has by default
    by: string[];
    filters: string[]; // "key=value", as --filter takes it
    sort: string;
    tz: string; // "UTC", "local" or an IANA name; "": the server's
    more: Record<string, string>; // a view's own: day, owner, rule, chart
}

export const HOME: Route = { view: "overview", path: [], window: "", by: [], filters: [], sort: "", tz: "", more: {} };

const decode = (text: string) => {
    try {
        return decodeURIComponent(text);
    } catch {
        return text; // half an escape: somebody cut the address
    }
};

export function parse(hash: string): Route {
    const text = hash.replace(/^#\/?/, "");
    const cut = text.indexOf("?");
    const [view, ...path] = (cut < 0 ? text : text.slice(0, cut)).split("/").map(decode);
    const route: Route = { ...HOME, view: view || HOME.view, path: path.filter((p) => p !== ""), filters: [], more: {} };
    for (const [key, value] of new URLSearchParams(cut < 0 ? "" : text.slice(cut + 1))) {
        if (key === "window") route.window = value;
        else if (key === "by") route.by = value.split(",").filter(Boolean);
        else if (key === "filter") route.filters.push(value);
        else if (key === "sort") route.sort = value;
        else if (key === "tz") route.tz = value;
        else route.more[key] = value;
    }
    return route;
}

/** Readable where an address allows it: commas, slashes and the first "=" of a filter stay. */
const encode = (text: string) =>
    encodeURIComponent(text).replace(/%2C/g, ",").replace(/%3D/g, "=").replace(/%2F/g, "/").replace(/%3A/g, ":");

export function format(route: Route): string {
    const query: string[] = [];
    const add = (key: string, value: string) => value && query.push(`${key}=${encode(value)}`);
    add("window", route.window);
    add("by", route.by.join(","));
    route.filters.forEach((f) => add("filter", f));
    add("sort", route.sort);
    add("tz", route.tz);
    Object.keys(route.more).sort().forEach((key) => add(key, route.more[key]));
    const path = [route.view, ...route.path].map((p) => encodeURIComponent(p)).join("/");
    return `#/${path}${query.length ? "?" + query.join("&") : ""}`;
}

/** The address of a view beside this one: window and zone are kept, the rest is what is given. */
export const link = (from: Route, to: Partial<Route>): string =>
    format({ ...HOME, window: from.window, tz: from.tz, ...to });

/** Filter values are globs: where a name has a sign of globs, "?" stands for it. */
export const filterOf = (key: string, value: string | null) =>
    `${key}=${value === null ? "-" : value.replace(/[*?[\]\\]/g, "?")}`;

export function splitFilter(filter: string): { key: string; not: boolean; value: string } {
    const at = filter.indexOf("=");
    const not = at > 0 && filter[at - 1] === "!";
    return { key: filter.slice(0, not ? at - 1 : at), not, value: filter.slice(at + 1) };
}

/** "*" is any text, "?" any one character; linear steps back, since names and globs come from strangers. */
export function globMatches(glob: string, text: string): boolean {
    let g = 0, t = 0, star = -1, from = 0;
    while (t < text.length) {
        if (g < glob.length && glob[g] === "*") [star, from] = [g++, t];
        else if (g < glob.length && (glob[g] === "?" || glob[g] === text[t])) (g++, t++);
        else if (star >= 0) [g, t] = [star + 1, ++from];
        else return false;
    }
    while (glob[g] === "*") g++;
    return g === glob.length;
}
