#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "util/csv.h"

/* Records as "LINE:field|field;", a broken one as "LINE!;". */
static const char *read_all(const char *text)
{
    static struct strbuf out;
    struct csv csv;
    strbuf_clear(&out);
    csv_init(&csv, str_of(text));
    while (csv_next(&csv)) {
        strbuf_addf(&out, "%d%s", csv.line, csv.broken ? "!" : ":");
        for (size_t i = 0; i < csv.n; i++) {
            strbuf_add(&out, i ? STR("|") : STR_NONE);
            strbuf_add(&out, csv_field(&csv, i));
        }
        strbuf_addc(&out, ';');
    }
    csv_release(&csv);
    return out.n ? out.text : "";
}

static void plain_records_with_every_line_end(void **state)
{
    (void)state;
    assert_string_equal(read_all("a,b\n1,2\n"), "1:a|b;2:1|2;");
    assert_string_equal(read_all("a,b\r\n1,2\r\n"), "1:a|b;2:1|2;");
    assert_string_equal(read_all("a,b\r1,2"), "1:a|b;2:1|2;");
    assert_string_equal(read_all(""), "");
    assert_string_equal(read_all("a,,\n"), "1:a||;");
    assert_string_equal(read_all(","), "1:|;");
}

static void a_byte_order_mark_blank_lines_and_comments_are_passed_over(void **state)
{
    (void)state;
    assert_string_equal(read_all("\xef\xbb\xbf\n# a, comment\n\na,b\n\n\n1,2\n\n"), "4:a|b;7:1|2;");
}

static void quotes_hold_commas_quotes_and_line_breaks(void **state)
{
    (void)state;
    assert_string_equal(read_all("\"a,b\",\"c\"\"d\",\"\"\n"), "1:a,b|c\"d|;");
    assert_string_equal(read_all("\"\"\"\",\"x\"\"\"\n"), "1:\"|x\";");
    assert_string_equal(read_all("\"one\ntwo\",b\nnext\n"), "1:one\ntwo|b;3:next;");
    assert_string_equal(read_all("\"one\r\ntwo\"\r\nnext"), "1:one\r\ntwo;3:next;");
    assert_string_equal(read_all("a\"b,c\"\n"), "1:a\"b|c\";"); /* inside an unquoted field */
}

static void a_stray_quote_costs_its_record_only(void **state)
{
    (void)state;
    assert_string_equal(read_all("a,b\n\"c,d\ne,f\n"), "1:a|b;2!;3:e|f;");
    assert_string_equal(read_all("\"c\" d,e\nf\n"), "1!;2:f;");
    assert_string_equal(read_all("\"c,d\n\"e\",f\ng\n"), "1!;2:e|f;3:g;");
    assert_string_equal(read_all("\""), "1!;");
}

static void fields_moved_by_a_growing_scratch_stay_right(void **state)
{
    (void)state;
    struct strbuf text = {0};
    struct csv csv;
    for (int i = 0; i < 200; i++)
        strbuf_addf(&text, "%s\"%d\"\"\"", i ? "," : "", i);
    csv_init(&csv, strbuf_str(&text));
    assert_true(csv_next(&csv));
    assert_int_equal(csv.n, 200);
    assert_true(str_eq(csv_field(&csv, 0), STR("0\"")));
    assert_true(str_eq(csv_field(&csv, 199), STR("199\"")));
    assert_true(str_eq(csv_field(&csv, 200), STR_NONE));
    assert_false(csv_next(&csv));
    csv_release(&csv);
    strbuf_release(&text);
}

static void a_record_with_too_many_fields_is_broken(void **state)
{
    (void)state;
    char text[CSV_FIELDS_MAX + 8];
    memset(text, ',', sizeof text);
    strcpy(text + CSV_FIELDS_MAX, "\nok\n"); /* that many commas are one field more */
    assert_string_equal(read_all(text), "1!;2:ok;");
    strcpy(text + CSV_FIELDS_MAX - 1, "\nok\n");
    assert_string_equal(read_all(text) + strlen(read_all(text)) - 5, "2:ok;");
    assert_true(read_all(text)[1] == ':');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_records_with_every_line_end),
        cmocka_unit_test(a_byte_order_mark_blank_lines_and_comments_are_passed_over),
        cmocka_unit_test(quotes_hold_commas_quotes_and_line_breaks),
        cmocka_unit_test(a_stray_quote_costs_its_record_only),
        cmocka_unit_test(fields_moved_by_a_growing_scratch_stay_right),
        cmocka_unit_test(a_record_with_too_many_fields_is_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
