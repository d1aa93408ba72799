/* Against what a real server answered (data/), with jansson as the oracle of random answers, and
 * by hand. */
#include "recorded.h"

#include <jansson.h>
#include <time.h>

#include "wire/query_json.h"

struct seen {
    bool recorded; /* compare with recorded.om */
    int series;
    size_t at[RECORDED_SERIES];
    struct strbuf log; /* everything that came, as text */
    bool refuse;
};

static bool on_series(void *context, const struct label *labels, size_t n)
{
    struct seen *seen = context;
    struct strbuf text = {0};
    if (seen->recorded)
        seen->series = recorded_find(labels, n);
    labels_text(labels, n, &text);
    strbuf_addf(&seen->log, "{%.*s}\n", STR_ARG(strbuf_str(&text)));
    strbuf_release(&text);
    return !seen->refuse;
}

static void on_samples(void *context, const time_ms *t, const double *v, size_t n)
{
    struct seen *seen = context;
    assert_true(n > 0 && n <= QUERY_JSON_BATCH);
    if (seen->recorded)
        recorded_check(seen->series, &seen->at[seen->series], t, v, n);
    for (size_t i = 0; i < n; i++)
        strbuf_addf(&seen->log, "%lld %.17g\n", (long long)t[i], v[i]);
}

static void on_text(void *context, struct str text)
{
    struct seen *seen = context;
    strbuf_addf(&seen->log, "\"%.*s\"\n", STR_ARG(text));
}

static struct query_json *reader(struct seen *seen)
{
    struct query_json_sink sink = {seen, on_series, on_samples, on_text};
    return query_json_new(&sink);
}

static enum err read_pieces(struct str text, size_t piece, struct seen *seen,
                            struct query_json **ret, struct error *err)
{
    struct query_json *x = reader(seen);
    enum err code = ERR_OK;
    for (size_t i = 0; i < text.n && !code; i += piece)
        code = query_json_feed(x, (struct str){text.p + i, text.n - i < piece ? text.n - i : piece},
                               err);
    if (!code)
        code = query_json_finish(x, err);
    if (ret)
        *ret = x;
    else
        query_json_free(x);
    return code;
}

/* What the text gives, as a log; it must be the same in pieces of every size up to 70. */
static const char *log_of(const char *text, enum err expected)
{
    static struct strbuf first;
    struct error err = {0};
    strbuf_clear(&first);
    strbuf_add(&first, STR(""));
    struct seen seen = {0};
    enum err code = read_pieces(str_of(text), strlen(text) + 1, &seen, NULL, &err);
    if (code != expected)
        fail_msg("%s: %s", text, err.text);
    strbuf_add(&first, strbuf_str(&seen.log));
    strbuf_release(&seen.log);
    for (size_t piece = 1; piece < 70; piece++) {
        struct seen again = {0};
        assert_int_equal(read_pieces(str_of(text), piece, &again, NULL, &err), expected);
        if (!expected && !str_eq(strbuf_str(&again.log), strbuf_str(&first)))
            fail_msg("pieces of %zu: %s, whole: %s", piece, again.log.text, first.text);
        strbuf_release(&again.log);
    }
    return first.text;
}

static int load(void **state)
{
    (void)state;
    recorded_load();
    return 0;
}

static void a_matrix_of_a_server_is_what_was_loaded(void **state)
{
    (void)state;
    struct strbuf body = test_file("unit/wire/data/recorded.matrix.json");
    struct error err;
    for (size_t piece = 1; piece <= body.n;
         piece = piece < 300 ? piece + 1 : body.n + !(piece < body.n)) {
        struct seen seen = {.recorded = true};
        struct query_json *x;
        assert_int_equal(read_pieces(strbuf_str(&body), piece, &seen, &x, &err), ERR_OK);
        const struct query_json_answer *answer = query_json_answer(x);
        assert_true(answer->success && answer->series == RECORDED_SERIES);
        assert_int_equal(answer->bad_values, 0);
        query_json_free(x);
        for (size_t i = 0; i < RECORDED_SERIES; i++)
            assert_int_equal(seen.at[i], recorded[i].n);
        strbuf_release(&seen.log);
    }
    strbuf_release(&body);
}

static void file_gives(const char *name, const char *expected)
{
    char path[256];
    snprintf(path, sizeof path, "unit/wire/data/recorded.%s.json", name);
    struct strbuf body = test_file(path);
    assert_string_equal(log_of(body.text, ERR_OK), expected);
    strbuf_release(&body);
}

static void other_answers_of_a_server_are_read(void **state)
{
    (void)state;
    file_gives("vector", "{__name__=wire_int|gpu=0|pod=a}\n1780273000000 76\n"
                         "{__name__=wire_int|gpu=1|pod=b \"q\" \\ x\ny}\n1780273000000 0\n");
    file_gives("scalar", "{}\n1780273000123 0.33333333333333331\n");
    file_gives("series", "{__name__=wire_constant|gpu=0|pod=a}\n{__name__=wire_gaps|e=x}\n"
                         "{__name__=wire_int|gpu=0|pod=a}\n"
                         "{__name__=wire_int|gpu=1|pod=b \"q\" \\ x\ny}\n"
                         "{__name__=wire_jitter|gpu=0}\n{__name__=wire_special}\n");
    file_gives("values", "\"wire_constant\"\n\"wire_gaps\"\n\"wire_int\"\n\"wire_jitter\"\n"
                         "\"wire_special\"\n");
}

static void a_refusal_is_told(void **state)
{
    (void)state;
    struct strbuf body = test_file("unit/wire/data/recorded.error.json");
    struct seen seen = {0};
    struct query_json *x;
    struct error err;
    assert_int_equal(read_pieces(strbuf_str(&body), 5, &seen, &x, &err), ERR_OK);
    const struct query_json_answer *answer = query_json_answer(x);
    assert_true(answer->status_seen && !answer->success);
    assert_true(str_eq(answer->error_type, STR("bad_data")));
    assert_true(str_starts(answer->error, STR("invalid parameter \"query\": 1:10: parse error")));
    query_json_free(x);
    strbuf_release(&body);
}

static void warnings_are_kept_wherever_they_stand(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]},"
        "\"warnings\":[\"a\",\"b\\u00e9\"],\"infos\":[\"c\"]}",
        "{\"warnings\":[\"a\",\"b\xc3\xa9\"],\"infos\":[\"c\"],\"data\":[],\"status\":\"success\"}",
    };
    for (size_t i = 0; i < 2; i++) {
        struct seen seen = {0};
        struct query_json *x;
        struct error err;
        assert_int_equal(read_pieces(str_of(texts[i]), 3, &seen, &x, &err), ERR_OK);
        const struct query_json_answer *answer = query_json_answer(x);
        assert_true(answer->success);
        assert_int_equal(answer->warnings_n, 2);
        assert_true(str_eq(answer->warnings[1], STR("b\xc3\xa9")));
        assert_int_equal(answer->infos_total, 1);
        query_json_free(x);
    }
}

#define MATRIX(series)                                                                             \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[" series "]}}"

static void values_are_read_in_all_their_forms(void **state)
{
    (void)state;
    assert_string_equal(
        log_of(MATRIX("{\"metric\":{\"a\":\"b\"},\"values\":[[1,\"1\"],[2.5,\"-0.25\"],"
                      "[3.0004,\"1e3\"],[3.0006,\"NaN\"],[4 , \"+Inf\" ],[5e0,\"-Inf\"],[-1,\"0\"],"
                      "[1780272000.123,\"0.12345678901234566\"]]}"),
               ERR_OK),
        "{a=b}\n1000 1\n2500 -0.25\n3000 1000\n3001 nan\n4000 inf\n5000 -inf\n-1000 0\n"
        "1780272000123 0.12345678901234566\n");
    assert_string_equal(
        log_of(MATRIX("{\"values\":[[1,\"1\"],[2,\"2\"]],\"metric\":{\"a\":\"b\"}}"), ERR_OK),
        "{a=b}\n1000 1\n2000 2\n");
    assert_string_equal(
        log_of(MATRIX("{\"metric\":{},\"values\":[]},{\"metric\":{\"\":\"\"}}"), ERR_OK),
        "{}\n{=}\n");
}

static void what_is_no_pair_is_counted_and_skipped(void **state)
{
    (void)state;
    const char *text = MATRIX("{\"metric\":{\"a\":\"b\"},\"values\":[[1,\"x\"],[\"1\",\"1\"],[1],"
                              "[1,\"1\",2],[1,[\"1\"]],[1,{}],[],[7,\"7\"],[1,null],7,\"7\",{}]}");
    assert_string_equal(log_of(text, ERR_OK), "{a=b}\n7000 7\n");
    struct seen seen = {0};
    struct query_json *x;
    struct error err;
    read_pieces(str_of(text), 1000, &seen, &x, &err);
    assert_int_equal(query_json_answer(x)->bad_values, 8);
    query_json_free(x);
    strbuf_release(&seen.log);
}

static void unknown_keys_and_shapes_are_skipped(void **state)
{
    (void)state;
    assert_string_equal(
        log_of(
            "{\"stats\":{\"values\":[[1,\"1\"]],\"metric\":{\"x\":\"y\"}},\"status\":\"success\","
            "\"data\":{\"resultType\":\"matrix\",\"result\":[{\"x\":[[[]]],\"metric\":{\"a\":\"b\"}"
            ","
            "\"histograms\":[[1,{\"count\":\"2\",\"buckets\":[[1,\"0\",\"1\",\"2\"]]}]],"
            "\"values\":[[1,\"1\"]]}],\"stats\":[1,2,{\"result\":[[1,\"1\"]]}]}}",
            ERR_OK),
        "{a=b}\n1000 1\n");
    assert_string_equal(log_of("{\"status\":\"success\",\"data\":null}", ERR_OK), "");
    assert_string_equal(log_of("{\"status\":\"success\",\"data\":\"x\"}", ERR_OK), "");
    assert_string_equal(log_of("{\"status\":\"success\",\"data\":{\"resultType\":\"string\","
                               "\"result\":[1,\"text\"]}}",
                               ERR_OK),
                        "\"text\"\n{}\n");
}

static void several_answers_may_follow_each_other(void **state)
{
    (void)state;
    assert_string_equal(log_of("{\"status\":\"success\",\"data\":[\"a\"]}\n"
                               "{\"status\":\"success\",\"data\":[\"b\"]}\n",
                               ERR_OK),
                        "\"a\"\n\"b\"\n");
}

static void texts_are_unescaped(void **state)
{
    (void)state;
    assert_string_equal(log_of("{\"status\":\"success\",\"data\":[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\","
                               "\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\",\"\\ud83d\",\"\\udE00x\"]}",
                               ERR_OK),
                        "\"\"\\/\b\f\n\r\t\"\n\"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"\n"
                        "\"\xef\xbf\xbd\"\n\"\xef\xbf\xbdx\"\n");
}

static void what_is_no_answer_is_an_error(void **state)
{
    (void)state;
    log_of("", ERR_PROTOCOL);
    log_of("{}", ERR_PROTOCOL);
    log_of("[]", ERR_PROTOCOL);
    log_of("{\"kind\":\"List\",\"items\":[1,2.5e-3,true,false,null]}", ERR_PROTOCOL);
    log_of("<html>", ERR_PARSE);
    log_of("{\"status\" \"success\"}", ERR_PARSE);
    log_of("{\"status\":\"success\",}", ERR_PARSE);
    log_of("{\"status\":\"success\"]", ERR_PARSE);
    log_of("{\"status\":success}", ERR_PARSE);
    log_of("{\"status\":01}", ERR_PARSE);
    log_of(MATRIX("{\"metric\":{},\"values\":[[01,\"1\"],[2,\"2\"]]}"), ERR_PARSE);
    log_of(MATRIX("{\"metric\":{},\"values\":[[1.,\"1\"],[2,\"2\"]]}"), ERR_PARSE);
    log_of("{\"status\":\"\\x\"}", ERR_PARSE);
    log_of("{\"status\":\"\\u12g4\"}", ERR_PARSE);
    log_of("{status:1}", ERR_PARSE);
    log_of("[1,]", ERR_PARSE);
    log_of("[,1]", ERR_PARSE);
    log_of("}", ERR_PARSE);
    log_of("{\"status\":\"succ", ERR_NETWORK);
    log_of("{\"status\":\"success\",\"data\":{\"result\":[{\"metric\":{},\"values\":[[1",
           ERR_NETWORK);
}

static void caps_are_kept(void **state)
{
    (void)state;
    struct strbuf text = {0};
    struct seen seen = {0};
    struct error err;
    for (int i = 0; i <= QUERY_JSON_DEPTH_MAX; i++)
        strbuf_addc(&text, '[');
    assert_int_equal(read_pieces(strbuf_str(&text), 7, &seen, NULL, &err), ERR_LIMIT);
    strbuf_clear(&text);
    strbuf_addf(&text, "{\"status\":\"");
    for (size_t i = 0; i <= QUERY_JSON_TOKEN_MAX; i++)
        strbuf_addc(&text, 'x');
    assert_int_equal(read_pieces(strbuf_str(&text), 1000, &seen, NULL, &err), ERR_LIMIT);
    strbuf_clear(&text);
    strbuf_addf(&text, "{\"data\":{\"result\":[{\"metric\":{");
    for (int i = 0; i <= QUERY_JSON_LABELS_MAX; i++)
        strbuf_addf(&text, "%s\"l%d\":\"\"", i ? "," : "", i);
    assert_int_equal(read_pieces(strbuf_str(&text), 1000, &seen, NULL, &err), ERR_LIMIT);
    strbuf_release(&text);
}

/* Random answers with odd texts and numbers, written by jansson: read back the same. */
static void random_answers_are_what_jansson_reads(void **state)
{
    (void)state;
    unsigned seed = (unsigned)time(NULL);
    print_message("seed %u\n", seed);
    for (int round = 0; round < 200; round++) {
        struct strbuf expected = {0};
        json_t *result = json_array();
        for (int s = rand_r(&seed) % 4; s >= 0; s--) {
            json_t *metric = json_object(), *values = json_array();
            strbuf_addc(&expected, '{');
            for (int l = 0; l < 3; l++) {
                char name[8], value[64] = "";
                snprintf(name, sizeof name, "l%d", l);
                for (int k = rand_r(&seed) % 8; k > 0; k--) {
                    static const char *const parts[] = {
                        "a", "\"",   "\\", "\n", "\xc3\xa9", "}", "\xf0\x9f\x98\x80",
                        "]", "\x01", ","};
                    strcat(value, parts[rand_r(&seed) % 10]);
                }
                json_object_set_new(metric, name, json_string(value));
                strbuf_addf(&expected, "%s%s=%s", l ? "|" : "", name, value);
            }
            strbuf_addf(&expected, "}\n");
            for (int k = rand_r(&seed) % 3000; k > 0; k--) {
                time_ms t = (time_ms)(rand_r(&seed) % 4 ? k * 30000 : rand_r(&seed));
                double v = rand_r(&seed) % 2 ? rand_r(&seed) % 101
                                             : (double)rand_r(&seed) / (1 + rand_r(&seed) % 9);
                char text[64];
                snprintf(text, sizeof text, "%.*g", rand_r(&seed) % 2 ? 17 : 6, v);
                json_array_append_new(values, json_pack("[f,s]", (double)t / 1000, text));
                strbuf_addf(&expected, "%lld %.17g\n", (long long)t, strtod(text, NULL));
            }
            json_array_append_new(result,
                                  json_pack("{s:o,s:o}", "metric", metric, "values", values));
        }
        json_t *root = json_pack("{s:s,s:{s:s,s:o}}", "status", "success", "data", "resultType",
                                 "matrix", "result", result);
        size_t flags = (rand_r(&seed) % 2 ? JSON_COMPACT : JSON_INDENT(1)) |
                       (rand_r(&seed) % 2 ? JSON_ENSURE_ASCII : 0);
        char *text = json_dumps(root, flags | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(15));
        struct seen seen = {0};
        struct error err;
        size_t piece = 1 + (size_t)rand_r(&seed) % 5000;
        assert_int_equal(read_pieces(str_of(text), piece, &seen, NULL, &err), ERR_OK);
        assert_true(str_eq(strbuf_str(&seen.log), strbuf_str(&expected)));
        strbuf_release(&seen.log);
        strbuf_release(&expected);
        free(text);
        json_decref(root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_matrix_of_a_server_is_what_was_loaded),
        cmocka_unit_test(other_answers_of_a_server_are_read),
        cmocka_unit_test(a_refusal_is_told),
        cmocka_unit_test(warnings_are_kept_wherever_they_stand),
        cmocka_unit_test(values_are_read_in_all_their_forms),
        cmocka_unit_test(what_is_no_pair_is_counted_and_skipped),
        cmocka_unit_test(unknown_keys_and_shapes_are_skipped),
        cmocka_unit_test(several_answers_may_follow_each_other),
        cmocka_unit_test(texts_are_unescaped),
        cmocka_unit_test(what_is_no_answer_is_an_error),
        cmocka_unit_test(caps_are_kept),
        cmocka_unit_test(random_answers_are_what_jansson_reads),
    };
    return cmocka_run_group_tests(tests, load, NULL);
}
