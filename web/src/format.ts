// Numbers for people, by the rules of the command line: "<$1" is little, only "$0" is none, "–" is not
// known. Everything here takes plain numbers; sums in money are made in cube.ts.

export const UNKNOWN = "–";

const SIGNS: Record<string, string> = { USD: "$", EUR: "€", GBP: "£", INR: "₹", KRW: "₩" };

/** As Intl.NumberFormat("en-US") writes it, without it: a browser takes 20 ms to make its first one, as long as the whole
 *  first view takes to be built. Rounded is the shortest decimal that is the number, half away from zero. */
export function digits(value: number, places = 0): string {
    const size = Math.abs(value);
    if (!(size < 1e21)) return value.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });
    const [whole, rest = ""] = (size < 1e-6 ? "0" : String(size)).split("."); // up to 1e-6 String writes an exponent
    let text = whole + rest.slice(0, places).padEnd(places, "0");
    if (rest[places] >= "5") text = String(BigInt(text) + 1n).padStart(text.length, "0");
    const point = text.length - places;
    return (value < 0 || Object.is(value, -0) ? "-" : "") + text.slice(0, point).replace(/\B(?=(\d{3})+$)/g, ",") + (places ? "." + text.slice(point) : "");
}

/** "GPU", "Instance type": a key as a heading. */
export const keyHeading = (key: string) => (key === "gpu" ? "GPU" : key[0].toUpperCase() + key.slice(1).replace("-", " "));

/** How many places suit an amount, where one stands alone. */
export const moneyPlaces = (largest: number) =>
    Math.abs(largest) >= 1000 || largest === 0 ? 0 : Math.abs(largest) >= 1 ? 2 : 4;

export function money(value: number | null | undefined, currency: string, places = moneyPlaces(value ?? 0)): string {
    if (value == null || Number.isNaN(value)) return UNKNOWN;
    const sign = SIGNS[currency];
    const least = Math.pow(10, -places);
    const tiny = value > 0 && value < least / 2;
    const text = digits(tiny ? least : Math.abs(value), value === 0 ? 0 : places);
    return (tiny ? "<" : "") + (value < 0 && Number(text.replace(/,/g, "")) !== 0 ? "−" : "") + (sign ?? "") + text + (sign ? "" : " " + currency);
}

/** A change: always with its sign. */
export function moneyChange(value: number, currency: string, places = moneyPlaces(value)): string {
    const text = money(Math.abs(value), currency, places);
    return value === 0 ? text : (value > 0 ? "+" : "−") + text;
}

/** Axis labels: "$1.2k", "$3M". */
export function moneyShort(value: number, currency: string): string {
    const sign = SIGNS[currency] ?? "";
    const unit = SIGNS[currency] ? "" : " " + currency;
    const size = Math.abs(value);
    const [by, letter] = size >= 1e6 ? [1e6, "M"] : size >= 1e4 ? [1e3, "k"] : [1, ""];
    const scaled = size / by;
    const places = scaled >= 100 || Number.isInteger(scaled) ? 0 : scaled >= 10 ? 1 : 2;
    return (value < 0 ? "−" : "") + sign + digits(scaled, by === 1 && scaled >= 10 ? 0 : places).replace(/\.0+$/, "") + letter + unit;
}

/** "37 %", "<1 %", ">99 %"; 0 % and 100 % only where they are. */
export function percent(ratio: number | null | undefined, places = 0): string {
    if (ratio == null || Number.isNaN(ratio)) return UNKNOWN;
    const step = Math.pow(10, -2 - places);
    let sign = "";
    if (ratio > 0 && ratio < step / 2) [sign, ratio] = ["<", step];
    else if (ratio < 1 && ratio >= 1 - step / 2) [sign, ratio] = [">", 1 - step];
    return sign + digits(ratio * 100, ratio === 0 || ratio === 1 ? 0 : places) + " %";
}

export const share = (part: number, whole: number) => (whole > 0 ? percent(part / whole) : UNKNOWN);

export function change(now: number, before: number): string {
    if (!(before > 0)) return now > 0 ? "new" : UNKNOWN;
    const ratio = now / before - 1;
    if (Math.abs(ratio) < 0.0005) return "0 %";
    const text = digits(Math.abs(ratio) * 100, Math.abs(ratio) < 0.1 ? 1 : 0);
    return (ratio > 0 ? "+" : "−") + text + " %";
}

export const hours = (value: number | null | undefined, places = 1) =>
    value == null ? UNKNOWN : value > 0 && value < 0.05 ? "<0.1" : digits(value, value === 0 ? 0 : places);

export const gib = (bytes: number | null | undefined) =>
    bytes == null ? UNKNOWN : digits(bytes / 2 ** 30, 1) + " GiB";

export const count = (value: number | null | undefined) => (value == null ? UNKNOWN : digits(value));

export const plural = (n: number, one: string, many = one + "s") => `${digits(n)} ${n === 1 ? one : many}`;

// ---- time ----------------------------------------------------------------------------------------

export type Zone = string; // "UTC", "local", or an IANA name

export const zoneName = (zone: Zone) =>
    zone === "local" ? Intl.DateTimeFormat().resolvedOptions().timeZone || "local time" : zone;

const formats = new Map<string, Intl.DateTimeFormat>();

const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

function parts(at: number, zone: Zone): Record<string, string> {
    if (zone === "UTC") { // without Intl: see digits()
        const date = new Date(at), [year, month, day, hour, minute] = date.toISOString().split(/[-T:]/);
        return { year, month, day, hour, minute, weekday: WEEKDAYS[date.getUTCDay()] };
    }
    let format = formats.get(zone);
    if (!format) {
        format = new Intl.DateTimeFormat("en-GB", {
            timeZone: zone === "local" ? undefined : zone,
            year: "numeric", month: "2-digit", day: "2-digit", weekday: "short",
            hour: "2-digit", minute: "2-digit", hourCycle: "h23",
        });
        formats.set(zone, format);
    }
    const found: Record<string, string> = {};
    for (const part of format.formatToParts(at)) found[part.type] = part.value;
    return found;
}

export function day(at: number, zone: Zone): string {
    const p = parts(at, zone);
    return `${p.year}-${p.month}-${p.day}`;
}
export const weekday = (at: number, zone: Zone) => parts(at, zone).weekday;
export function clock(at: number, zone: Zone): string {
    const p = parts(at, zone);
    return `${p.hour}:${p.minute}`;
}
export const moment = (at: number, zone: Zone) => `${day(at, zone)} ${clock(at, zone)}${zone === "UTC" ? "Z" : ""}`;
export const span = (from: string, to: string, zone: Zone) =>
    `${moment(Date.parse(from), zone)} to ${moment(Date.parse(to), zone)}`;

/** "168 h" and "7 days" are the same; whole days read better. */
export function duration(hoursLong: number): string {
    if (hoursLong >= 48 && Number.isInteger(hoursLong / 24)) return plural(hoursLong / 24, "day");
    return digits(hoursLong, Number.isInteger(hoursLong) ? 0 : 1) + " h";
}

// ---- names ---------------------------------------------------------------------------------------

/** Names come from strangers. What shows nothing itself but changes what is around it (controls,
 *  direction marks, joiners) is written as the command line writes it; what remains is shown as text. */
export function clean(name: string): string {
    let out = "";
    for (const c of name) {
        const code = c.codePointAt(0)!;
        const hidden = code < 0x20 || (code >= 0x7f && code < 0xa0) || code === 0xad || code === 0x61c ||
            (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
            (code >= 0x2060 && code <= 0x2069) || code === 0xfeff;
        out += !hidden ? c : code < 0x100 ? "\\x" + code.toString(16).padStart(2, "0") : "\\u" + code.toString(16).padStart(4, "0");
    }
    return out;
}
