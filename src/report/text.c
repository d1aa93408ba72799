/* Text for people.
 *
 * Names of pods, nodes and teams come from whoever may create a pod: a name that carries an escape
 * sequence would otherwise write on the reader's terminal. So every name goes through text_clean()
 * before it is laid out. Widths are libc's, in a locale of our own, since a pipe or a service often
 * runs in the C locale, where it knows none. */
#include "report/text.h"

#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <wchar.h>

static locale_t utf8_locale;
static pthread_once_t utf8_once = PTHREAD_ONCE_INIT;

static void make_locale(void)
{
    utf8_locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

size_t text_code_point(const char *p, size_t n, uint32_t *ret)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *u = (const unsigned char *)p;
    if (n == 0)
        return 0;
    size_t length = u[0] < 0x80       ? 1
                    : u[0] >> 5 == 6  ? 2
                    : u[0] >> 4 == 14 ? 3
                    : u[0] >> 3 == 30 ? 4
                                      : 0;
    if (length == 0 || length > n)
        return 0;
    uint32_t code = length == 1 ? u[0] : u[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((u[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (u[i] & 0x3fu);
    }
    if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    *ret = code;
    return length;
}

/* Characters that show nothing themselves but change what is around them. */
static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0xad || c == 0x61c || c == 0x180e ||
           (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
           (c >= 0xe0000 && c <= 0xe007f);
}

void text_clean(struct strbuf *out, struct str name)
{
    for (size_t i = 0; i < name.n;) {
        uint32_t c;
        size_t n = text_code_point(name.p + i, name.n - i, &c);
        if (n == 0)
            strbuf_addf(out, "\\x%02x", (unsigned char)name.p[i]);
        else if (is_control(c))
            strbuf_addf(out, c < 0x100 ? "\\x%02x" : "\\u%04x", c);
        else
            strbuf_add(out, (struct str){name.p + i, n});
        i += n ? n : 1;
    }
}

static size_t code_width(uint32_t c)
{
    if (c < 0x300)
        return 1;
    int width = utf8_locale ? wcwidth((wchar_t)c) : 1;
    return width < 0 ? 1 : (size_t)width;
}

size_t text_width(struct str clean)
{
    pthread_once(&utf8_once, make_locale);
    locale_t before = utf8_locale ? uselocale(utf8_locale) : (locale_t)0;
    size_t width = 0;
    for (size_t i = 0; i < clean.n;) {
        uint32_t c = '?';
        size_t n = text_code_point(clean.p + i, clean.n - i, &c);
        width += code_width(c);
        i += n ? n : 1;
    }
    if (before)
        uselocale(before);
    return width;
}

/* Bytes of the longest head (or tail) of the text that fits into `columns`. */
static size_t head_bytes(struct str s, size_t columns)
{
    size_t end = 0;
    for (size_t i = 0; i < s.n;) {
        uint32_t c;
        size_t n = text_code_point(s.p + i, s.n - i, &c);
        i += n ? n : 1;
        if (text_width((struct str){s.p, i}) > columns)
            break;
        end = i;
    }
    return end;
}

static size_t tail_start(struct str s, size_t columns)
{
    size_t start = s.n;
    for (size_t i = s.n; i > 0;) {
        do
            i--;
        while (i > 0 && ((unsigned char)s.p[i] & 0xc0) == 0x80);
        if (text_width((struct str){s.p + i, s.n - i}) > columns)
            break;
        start = i;
    }
    return start;
}

void text_shorten(struct strbuf *out, struct str clean, size_t columns)
{
    if (text_width(clean) <= columns) {
        strbuf_add(out, clean);
        return;
    }
    size_t room = columns - 1, tail = tail_start(clean, room / 2);
    strbuf_add(out, (struct str){clean.p, head_bytes(clean, room - room / 2)});
    strbuf_add(out, STR("…"));
    strbuf_add(out, (struct str){clean.p + tail, clean.n - tail});
}

void text_json(struct strbuf *out, struct str name)
{
    for (size_t i = 0; i < name.n;) {
        uint32_t c;
        size_t n = text_code_point(name.p + i, name.n - i, &c);
        if (n == 0)
            strbuf_add(out, STR("\xef\xbf\xbd"));
        else if (c == '"' || c == '\\')
            strbuf_addf(out, "\\%c", (char)c);
        else if (c == '\n')
            strbuf_add(out, STR("\\n"));
        else if (c == '\t')
            strbuf_add(out, STR("\\t"));
        else if (c < 0x20 || c == 0x7f || c == 0x2028 || c == 0x2029)
            strbuf_addf(out, "\\u%04x", c);
        else
            strbuf_add(out, (struct str){name.p + i, n});
        i += n ? n : 1;
    }
}

/* Digits of size, thousands separated by `comma` (0: not at all). */
static void add_digits(struct strbuf *out, unsigned __int128 size, char comma)
{
    char text[64];
    size_t at = sizeof text;
    int digits = 0;
    do {
        if (comma && digits && digits % 3 == 0)
            text[--at] = comma;
        text[--at] = (char)('0' + (int)(size % 10));
        digits++;
        size /= 10;
    } while (size);
    strbuf_add(out, (struct str){text + at, sizeof text - at});
}

void text_count(struct strbuf *out, wide_t count)
{
    if (count < 0)
        strbuf_addc(out, '-');
    add_digits(out, (unsigned __int128)(count < 0 ? -count : count), ',');
}

static wide_t ten_to(int places)
{
    wide_t scale = 1;
    while (places-- > 0)
        scale *= 10;
    return scale;
}

void text_nano(struct strbuf *out, wide_t nano, int places)
{
    wide_t unit = ten_to(9 - places), scale = ten_to(places);
    wide_t size = nano < 0 ? -nano : nano;
    size = (size + unit / 2) / unit;
    if (nano < 0 && size)
        strbuf_addc(out, '-');
    add_digits(out, (unsigned __int128)(size / scale), ',');
    if (places)
        strbuf_addf(out, ".%0*lld", places, (long long)(size % scale));
}

void text_nano_plain(struct strbuf *out, wide_t nano)
{
    wide_t size = nano < 0 ? -nano : nano;
    if (nano < 0)
        strbuf_addc(out, '-');
    add_digits(out, (unsigned __int128)(size / NANO), 0);
    long long rest = (long long)(size % NANO);
    if (rest == 0)
        return;
    char text[16];
    int n = snprintf(text, sizeof text, ".%09lld", rest);
    while (text[n - 1] == '0')
        n--;
    strbuf_add(out, (struct str){text, (size_t)n});
}

/* Signs that stand for one currency only where the reader expects it. */
static const char *currency_sign(const char *currency)
{
    static const struct {
        const char *code, *sign;
    } signs[] = {{"USD", "$"}, {"EUR", "€"}, {"GBP", "£"}, {"INR", "₹"}, {"KRW", "₩"}};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strcmp(currency, signs[i].code) == 0)
            return signs[i].sign;
    return NULL;
}

void text_money(struct strbuf *out, money_t amount, int places, const char *currency)
{
    const char *sign = currency_sign(currency);
    money_t least = (money_t)ten_to(9 - places);
    bool tiny = amount > 0 && amount < (least + 1) / 2;
    if (tiny)
        strbuf_addc(out, '<');
    if (amount < 0)
        strbuf_addc(out, '-');
    if (sign)
        strbuf_add(out, str_of(sign));
    wide_t size = amount < 0 ? -(wide_t)amount : amount;
    text_nano(out, tiny ? least : size, amount == 0 ? 0 : places);
    if (!sign)
        strbuf_addf(out, " %s", currency);
}

int text_money_places(money_t largest)
{
    return largest >= 1000 * NANO ? 0 : largest >= NANO || largest == 0 ? 2 : 4;
}

void text_percent(struct strbuf *out, int64_t nano, int places)
{
    const int64_t one = NANO;
    int64_t step = (int64_t)ten_to(7 - places); /* the least that is shown */
    if (nano > 0 && nano < (step + 1) / 2) {
        strbuf_addc(out, '<');
        nano = step;
    } else if (nano < one && nano >= one - step / 2) {
        strbuf_addc(out, '>');
        nano = one - step;
    }
    text_nano(out, (wide_t)nano * 100, nano == 0 || nano == one ? 0 : places);
    strbuf_add(out, STR(" %"));
}

void text_plural(struct strbuf *out, wide_t count, const char *one, const char *many)
{
    text_count(out, count);
    strbuf_addf(out, " %s", count == 1 ? one : many);
}

void text_time(struct strbuf *out, time_ms t)
{
    char text[TIME_TEXT_MAX];
    time_format(t, text);
    if (t % 60000 == 0 && strlen(text) == 20)
        strbuf_addf(out, "%.10s %.5sZ", text, text + 11);
    else
        strbuf_add(out, str_of(text));
}
