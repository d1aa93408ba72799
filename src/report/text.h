/* Text for people: names of strangers made harmless, width in columns of a terminal, amounts.
 * All functions append to a buffer; none fails. */
#ifndef GPUTALLY_REPORT_TEXT_H
#define GPUTALLY_REPORT_TEXT_H

#include "util/clock.h"
#include "util/money.h"
#include "util/str.h"

/* A name as it may be printed: valid UTF-8, without anything that moves the cursor, hides text or
 * turns its direction. Control characters, escape sequences, bidirectional and zero-width controls
 * and broken bytes come out as \x1b or \u202e. A name that is fine comes out as it is. */
void text_clean(struct strbuf *out, struct str name);

/* Columns that a clean text takes on a terminal: wide characters 2, combining marks 0. */
size_t text_width(struct str clean);

/* A clean text cut in its middle to at most `columns` (>= 3), with … where something is left out:
 * names of pods differ at their ends. */
void text_shorten(struct strbuf *out, struct str clean, size_t columns);

/* The same text inside a JSON string, without the quotes: broken UTF-8 becomes U+FFFD. */
void text_json(struct strbuf *out, struct str name);

/* One code point of p[0..n): its length in bytes, 0 where it is broken. */
size_t text_code_point(const char *p, size_t n, uint32_t *ret);

/* "16,128" of a whole number. */
void text_count(struct strbuf *out, wide_t count);
/* value / 10^9 to `places` (0..9) decimals, halves away from zero, thousands separated: "1,234.5".
 */
void text_nano(struct strbuf *out, wide_t nano, int places);
/* The same without separators and without trailing zeros: for machines. "0.25", "168". */
void text_nano_plain(struct strbuf *out, wide_t nano);

/* "$16,128" or "16,128 CHF"; something that would round to nothing is "<$1", zero is "$0". */
void text_money(struct strbuf *out, money_t amount, int places, const char *currency);
/* Decimals that a column needs whose largest amount is this: 0 from 1,000 on, else 2, else 4. */
int text_money_places(money_t largest);

/* A ratio of 1e-9 as percent: "61 %", "<1 %", "99.4 %" with one decimal; 100 % is only said of all.
 */
void text_percent(struct strbuf *out, int64_t nano, int places);

/* "1,204 samples", "1 sample". */
void text_plural(struct strbuf *out, wide_t count, const char *one, const char *many);

/* "2026-11-23 00:00Z" */
void text_time(struct strbuf *out, time_ms t);

#endif
