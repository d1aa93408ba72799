/* CSV by RFC 4180, as people write it: quoted fields with doubled quotes and line breaks, LF, CRLF
 * or CR line ends, a byte order mark, no final line end. A quote inside an unquoted field is a
 * plain byte. Blank lines are skipped, and so are lines that begin with '#'.
 *
 * The reader gives views: into the text where a field needs no unquoting, else into its scratch,
 * until the next record. A record of more than CSV_FIELDS_MAX fields, or a quote that is never
 * closed, is a broken record: it is told apart, not fatal, and reading goes on behind it (an
 * unclosed quote: on the line after the one where it stands). One thread owns a reader. */
#ifndef GPUTALLY_UTIL_CSV_H
#define GPUTALLY_UTIL_CSV_H

#include "util/str.h"

#define CSV_FIELDS_MAX 256

struct csv {
    const char *p, *end;
    int line;           /* of the record that was given last, from 1 */
    int next_line;      /* of p */
    const char *broken; /* why the record that was given last is none; NULL: it is one */
    size_t n;           /* fields of the record */
    struct str fields[CSV_FIELDS_MAX];
    struct strbuf scratch;
};
void csv_init(struct csv *csv, struct str text); /* text must outlive the reader */
void csv_release(struct csv *csv);
bool csv_next(struct csv *csv);                        /* false: the end */
struct str csv_field(const struct csv *csv, size_t i); /* STR_NONE beyond the record */

#endif
