/* A TZif file lists the instants at which the offset changes; after the last one the rule in its
 * footer (a POSIX TZ string, "CET-1CEST,M3.5.0,M10.5.0/3") goes on for ever. The files are written
 * by the system, but names come from people: they may not climb out of the folder, and sizes are
 * checked. */
#include "query/zone.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER "/usr/share/zoneinfo"
#define FILE_MAX ((size_t)1 << 20)
#define CHANGES_MAX 4096
#define NAME_LENGTH_MAX 64

/* When a rule of the footer begins, in local time before the change. */
struct rule_date {
    enum { DATE_MONTH_WEEK_DAY, DATE_JULIAN, DATE_DAY } kind;
    int month, week, day;
    int seconds;
};

struct zone {
    struct zone *next;
    char name[NAME_LENGTH_MAX];
    int64_t *at;     /* s */
    int32_t *offset; /* s, from at[i] on */
    size_t n;
    int32_t first_offset;
    bool has_rule, has_summer;
    int32_t standard, summer; /* s east of UTC */
    struct rule_date to_summer, to_standard;
};

static const struct zone utc = {.name = "UTC"};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct zone *loaded;

static uint64_t big_endian(const uint8_t *p, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v = v << 8 | p[i];
    return v;
}

/* [hh[:mm[:ss]]] with a sign, in seconds. */
static bool rule_time(const char **p, int *ret)
{
    int sign = 1, seconds = 0, unit = 3600;
    if (**p == '+' || **p == '-')
        sign = *(*p)++ == '-' ? -1 : 1;
    if (**p < '0' || **p > '9')
        return false;
    for (;;) {
        int number = 0;
        while (**p >= '0' && **p <= '9' && number < 1000)
            number = number * 10 + (*(*p)++ - '0');
        seconds += number * unit;
        unit /= 60;
        if (**p != ':' || unit == 0)
            break;
        (*p)++;
    }
    *ret = sign * seconds;
    return true;
}

static bool rule_abbreviation(const char **p)
{
    const char *from = *p;
    if (**p == '<') {
        *p += strcspn(*p, ">");
        return *(*p)++ == '>';
    }
    while ((**p >= 'A' && **p <= 'Z') || (**p >= 'a' && **p <= 'z'))
        (*p)++;
    return *p - from >= 3;
}

static bool rule_number(const char **p, int *ret)
{
    char *end;
    long v = strtol(*p, &end, 10);
    if (end == *p || v < 0 || v > 366)
        return false;
    *ret = (int)v;
    *p = end;
    return true;
}

static bool rule_date(const char **p, struct rule_date *ret)
{
    *ret = (struct rule_date){.seconds = 7200};
    if (*(*p)++ != ',')
        return false;
    if (**p == 'M') {
        (*p)++;
        ret->kind = DATE_MONTH_WEEK_DAY;
        if (!rule_number(p, &ret->month) || *(*p)++ != '.' || !rule_number(p, &ret->week) ||
            *(*p)++ != '.' || !rule_number(p, &ret->day) || ret->month < 1 || ret->month > 12 ||
            ret->week < 1 || ret->week > 5 || ret->day > 6)
            return false;
    } else {
        ret->kind = **p == 'J' ? DATE_JULIAN : DATE_DAY;
        if (**p == 'J')
            (*p)++;
        if (!rule_number(p, &ret->day))
            return false;
    }
    if (**p == '/') {
        (*p)++;
        return rule_time(p, &ret->seconds);
    }
    return true;
}

static void parse_rule(struct zone *zone, const char *p)
{
    int west;
    if (!rule_abbreviation(&p) || !rule_time(&p, &west))
        return;
    zone->standard = -west;
    zone->has_rule = true;
    if (!*p || !rule_abbreviation(&p))
        return;
    zone->summer = zone->standard + 3600;
    if (*p && *p != ',') {
        if (!rule_time(&p, &west))
            return;
        zone->summer = -west;
    }
    zone->has_summer = rule_date(&p, &zone->to_summer) && rule_date(&p, &zone->to_standard);
}

static bool leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* Days from 1970-01-01 to the first of a month (1..12) of a year. */
static int64_t days_to(int64_t year, int month)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    int64_t y = year - 1;
    int64_t days = 365 * y + y / 4 - y / 100 + y / 400 - 719162;
    return days + before[month - 1] + (month > 2 && leap(year));
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t year_of(int64_t seconds)
{
    int64_t days = floor_div(seconds, 86400);
    int64_t year = 1970 + floor_div(days, 366);
    while (days_to(year + 1, 1) <= days)
        year++;
    return year;
}

/* Local second at which the rule begins in a year. */
static int64_t rule_in(const struct rule_date *date, int64_t year)
{
    int64_t day;
    if (date->kind == DATE_MONTH_WEEK_DAY) {
        int64_t first = days_to(year, date->month);
        int64_t past = date->month == 12 ? days_to(year + 1, 1) : days_to(year, date->month + 1);
        int64_t weekday = ((first + 4) % 7 + 7) % 7; /* 1970-01-01 was a Thursday */
        day = first + (date->day - weekday + 7) % 7 + (date->week - 1) * 7;
        if (day >= past)
            day -= 7;
    } else {
        day = days_to(year, 1) + date->day;
        if (date->kind == DATE_JULIAN)
            day -= !(leap(year) && date->day >= 60);
    }
    return day * 86400 + date->seconds;
}

static int32_t rule_offset(const struct zone *zone, int64_t t)
{
    if (!zone->has_summer)
        return zone->standard;
    int64_t year = year_of(t + zone->standard);
    int64_t summer = rule_in(&zone->to_summer, year) - zone->standard;
    int64_t standard = rule_in(&zone->to_standard, year) - zone->summer;
    bool in_summer = summer < standard ? t >= summer && t < standard : t >= summer || t < standard;
    return in_summer ? zone->summer : zone->standard;
}

bool zone_is_utc(const struct zone *zone)
{
    return zone->n == 0 && zone->first_offset == 0 &&
           (!zone->has_rule || (!zone->has_summer && zone->standard == 0));
}

time_ms zone_offset(const struct zone *zone, time_ms t)
{
    int64_t s = floor_div(t, 1000);
    if (zone->n == 0 && !zone->has_rule)
        return (time_ms)zone->first_offset * 1000;
    if (zone->n == 0 || s >= zone->at[zone->n - 1])
        return (zone->has_rule ? rule_offset(zone, s) : zone->offset[zone->n - 1]) * (time_ms)1000;
    size_t low = 0, high = zone->n; /* the first change after s */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (zone->at[middle] <= s)
            low = middle + 1;
        else
            high = middle;
    }
    return (low ? zone->offset[low - 1] : zone->first_offset) * (time_ms)1000;
}

time_ms zone_instant(const struct zone *zone, time_ms local)
{
    /* The offsets a day before and after are those that may hold: no two changes lie so close. */
    time_ms before = zone_offset(zone, local - DAY_MS), after = zone_offset(zone, local + DAY_MS);
    time_ms early = local - before;
    if (zone_offset(zone, early) == before)
        return early;
    time_ms late = local - after;
    if (zone_offset(zone, late) == after)
        return late;
    /* Jumped over: the jump is the instant at which `after` begins to hold. */
    time_ms low = late, high = early;
    while (high - low > 1000) {
        time_ms middle = low + (high - low) / 2000 * 1000;
        if (zone_offset(zone, middle) == before)
            low = middle;
        else
            high = middle;
    }
    return high;
}

static bool read_file(const char *name, uint8_t **ret, size_t *ret_n)
{
    char path[sizeof FOLDER + 1 + NAME_LENGTH_MAX];
    snprintf(path, sizeof path, FOLDER "/%s", name);
    FILE *file = fopen(path, "rbe");
    if (!file)
        return false;
    uint8_t *bytes = mem_alloc(FILE_MAX + 1);
    size_t n = fread(bytes, 1, FILE_MAX, file);
    bool fine = n > 44 && !ferror(file) && memcmp(bytes, "TZif", 4) == 0 && bytes[4] >= '2';
    fclose(file);
    if (!fine) {
        free(bytes);
        return false;
    }
    bytes[n] = 0; /* ends the footer, whatever it is */
    *ret = bytes;
    *ret_n = n;
    return true;
}

struct counts {
    size_t utc, standard, leap, times, types, letters;
};

static struct counts header_of(const uint8_t *p)
{
    return (struct counts){(size_t)big_endian(p + 20, 4), (size_t)big_endian(p + 24, 4),
                           (size_t)big_endian(p + 28, 4), (size_t)big_endian(p + 32, 4),
                           (size_t)big_endian(p + 36, 4), (size_t)big_endian(p + 40, 4)};
}

static size_t body_bytes(const struct counts *c, size_t time_size)
{
    return c->times * time_size + c->times + c->types * 6 + c->letters + c->leap * (time_size + 4) +
           c->standard + c->utc;
}

static bool counts_fit(const struct counts *c)
{
    return c->utc <= CHANGES_MAX && c->standard <= CHANGES_MAX && c->leap <= CHANGES_MAX &&
           c->times <= CHANGES_MAX && c->types >= 1 && c->types <= 256 && c->letters <= CHANGES_MAX;
}

static bool parse_file(struct zone *zone, const uint8_t *bytes, size_t n)
{
    /* Version 1's block (32-bit times) comes first; version 2's after it. */
    struct counts c = header_of(bytes);
    if (!counts_fit(&c))
        return false;
    size_t at = 44 + body_bytes(&c, 4);
    if (n < at + 44 || memcmp(bytes + at, "TZif", 4) != 0)
        return false;
    c = header_of(bytes + at);
    if (!counts_fit(&c) || n < at + 44 + body_bytes(&c, 8))
        return false;
    const uint8_t *times = bytes + at + 44, *which = times + c.times * 8;
    const uint8_t *types = which + c.times;
    zone->at = mem_alloc(c.times * sizeof *zone->at);
    zone->offset = mem_alloc(c.times * sizeof *zone->offset);
    zone->n = c.times;
    zone->first_offset = (int32_t)big_endian(types, 4);
    for (size_t i = 0; i < c.times; i++) {
        if (which[i] >= c.types)
            return false;
        zone->at[i] = (int64_t)big_endian(times + i * 8, 8);
        zone->offset[i] = (int32_t)big_endian(types + which[i] * 6, 4);
    }
    const char *footer = (const char *)bytes + at + 44 + body_bytes(&c, 8);
    if (*footer == '\n')
        parse_rule(zone, footer + 1);
    return true;
}

static bool fits_a_path(const char *name)
{
    if (!*name || *name == '/' || strlen(name) >= NAME_LENGTH_MAX || strstr(name, ".."))
        return false;
    return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/") ==
           strlen(name);
}

static struct zone *load(const char *name)
{
    uint8_t *bytes;
    size_t n;
    if (!fits_a_path(name) || !read_file(name, &bytes, &n))
        return NULL;
    struct zone *zone = mem_zalloc(1, sizeof *zone);
    snprintf(zone->name, sizeof zone->name, "%s", name);
    if (!parse_file(zone, bytes, n)) {
        free(zone->at);
        free(zone->offset);
        free(zone);
        zone = NULL;
    }
    free(bytes);
    return zone;
}

enum err zone_load(const char *name, const struct zone **ret, struct error *err)
{
    if (!name || strcmp(name, "UTC") == 0) {
        *ret = &utc;
        return ERR_OK;
    }
    pthread_mutex_lock(&lock);
    struct zone *zone = loaded;
    while (zone && strcmp(zone->name, name) != 0)
        zone = zone->next;
    if (!zone && (zone = load(name))) {
        zone->next = loaded;
        loaded = zone;
    }
    pthread_mutex_unlock(&lock);
    if (!zone)
        return error_set(err, ERR_USAGE,
                         "no time zone \"%s\": give an IANA name such as Europe/Berlin (the "
                         "package tzdata has them)",
                         name);
    *ret = zone;
    return ERR_OK;
}
