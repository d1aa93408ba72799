/* What data/recorded.om holds, read by sscanf and strtod: the expected values of every decoder of
 * what a server answered over it (see data/README.md). */
#ifndef GPUTALLY_TESTS_WIRE_RECORDED_H
#define GPUTALLY_TESTS_WIRE_RECORDED_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "util/clock.h"
#include "util/str.h"

#define RECORDED_SERIES 6
#define RECORDED_MAX 400

struct recorded_series {
    const char *head, *labels; /* as the text has it, as labels_text gives it */
    time_ms t[RECORDED_MAX];
    double v[RECORDED_MAX];
    size_t n;
};

static struct recorded_series recorded[RECORDED_SERIES] = {
    {.head = "wire_constant{gpu=\"0\",pod=\"a\"} ", .labels = "__name__=wire_constant|gpu=0|pod=a"},
    {.head = "wire_gaps{e=\"x\"} ", .labels = "__name__=wire_gaps|e=x"},
    {.head = "wire_int{gpu=\"0\",pod=\"a\"} ", .labels = "__name__=wire_int|gpu=0|pod=a"},
    {.head = "wire_int{gpu=\"1\",pod=\"b \\\"q\\\" \\\\ x\\ny\"} ",
     .labels = "__name__=wire_int|gpu=1|pod=b \"q\" \\ x\ny"},
    {.head = "wire_jitter{gpu=\"0\"} ", .labels = "__name__=wire_jitter|gpu=0"},
    {.head = "wire_special{} ", .labels = "__name__=wire_special"},
};

/* A file of tests/, malloc'd. */
static inline struct strbuf test_file(const char *name)
{
    struct strbuf bytes = {0};
    char path[1024], piece[4096];
    snprintf(path, sizeof path, "%s/%s", TEST_DATA, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s is not there", path);
    size_t n;
    while ((n = fread(piece, 1, sizeof piece, file)) > 0)
        strbuf_add(&bytes, (struct str){piece, n});
    fclose(file);
    return bytes;
}

static inline void recorded_load(void)
{
    struct strbuf text = test_file("unit/wire/data/recorded.om");
    for (size_t i = 0; i < RECORDED_SERIES; i++)
        recorded[i].n = 0;
    for (char *line = strtok(text.text, "\n"); line; line = strtok(NULL, "\n")) {
        for (size_t i = 0; i < RECORDED_SERIES; i++) {
            struct recorded_series *series = &recorded[i];
            if (strncmp(line, series->head, strlen(series->head)) != 0)
                continue;
            char *end;
            assert_true(series->n < RECORDED_MAX);
            series->v[series->n] = strtod(line + strlen(series->head), &end);
            series->t[series->n++] = (time_ms)llround(strtod(end, NULL) * 1000);
        }
    }
    strbuf_release(&text);
}

static inline void labels_text(const struct label *labels, size_t n, struct strbuf *ret)
{
    strbuf_clear(ret);
    for (size_t i = 0; i < n; i++)
        strbuf_addf(ret, "%s%.*s=%.*s", i ? "|" : "", STR_ARG(labels[i].name),
                    STR_ARG(labels[i].value));
}

static inline int recorded_find(const struct label *labels, size_t n)
{
    struct strbuf text = {0};
    int found = -1;
    labels_text(labels, n, &text);
    for (int i = 0; i < RECORDED_SERIES; i++)
        if (str_eq(strbuf_str(&text), str_of(recorded[i].labels)))
            found = i;
    if (found < 0)
        fail_msg("no such series: %s", text.text ? text.text : "");
    strbuf_release(&text);
    return found;
}

/* Any NaN is any NaN, and -0 is 0: a server does not write a zero into a ReadResponse's sample. */
static inline bool same_value(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b;
}

/* The next n samples of series i, of which *at were seen before. */
static inline void recorded_check(int i, size_t *at, const time_ms *t, const double *v, size_t n)
{
    for (size_t k = 0; k < n; k++, ++*at) {
        assert_true(*at < recorded[i].n);
        assert_int_equal(t[k], recorded[i].t[*at]);
        if (!same_value(v[k], recorded[i].v[*at]))
            fail_msg("%s sample %zu: %a, expected %a", recorded[i].labels, *at, v[k],
                     recorded[i].v[*at]);
    }
}

#endif
