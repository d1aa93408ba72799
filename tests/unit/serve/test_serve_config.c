/* The sections serve and sources: what they give, and what is said where they are wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "serve/serve_config.h"

static struct error error;
static struct config *config;
static struct serve_config serve;

static enum err read_text(const char *text)
{
    config = config_new();
    error.text[0] = 0;
    enum err code = config_read_text(config, "c.yaml", str_of(text), &error);
    serve = (struct serve_config){0};
    if (!code)
        code = serve_config_read(config, &serve, &error);
    if (!code)
        code = serve_config_finish(&serve, &error);
    return code;
}

static void let_go(void)
{
    serve_config_release(&serve);
    config_free(config);
}

static void sections_are_read(void **state)
{
    (void)state;
    if (read_text(
            "serve:\n"
            "  db: gpu.db\n"
            "  every: 5m\n"
            "  retain: 400d\n"
            "  hosts: [a.example, b.example]\n"
            "  journal_cap: 2GiB\n"
            "  log: {level: debug, format: json}\n"
            "  limits: {connections: 10, idle_timeout: 5s}\n"
            "sources:\n"
            "- {cluster: prod, url: 'http://p:9090', headers: {X-Scope-OrgID: a}, api: query}\n"
            "- {cluster: lab, kind: scrape, targets: ['g1:9400', 'g2:9400'], interval: 30s,\n"
            "   labels: {rack: r1}}\n"
            "- {cluster: lab, kind: kubernetes, kubeconfig: kube/config}\n"
            "- {kind: remote-write, book: '', tenant: edge, replica_labels: [replica]}\n"))
        fail_msg("%s", error.text);
    assert_string_equal(serve.db, "gpu.db");
    assert_string_equal(serve.journal, "gpu.db.journal");
    assert_int_equal(serve.every_ms, 5 * 60 * 1000);
    assert_int_equal(serve.retain_ms, 400 * DAY_MS);
    assert_int_equal(serve.hosts_n, 2);
    assert_int_equal(serve.journal_cap_bytes, UINT64_C(2) << 30);
    assert_int_equal(serve.log_level, LOG_DEBUG);
    assert_int_equal(serve.log_format, LOG_JSON);
    assert_int_equal(serve.limits.connections, 10);
    assert_int_equal(serve.limits.idle_ms, 5000);
    assert_int_equal(serve.limits.body_ms, 60000); /* the default */
    assert_int_equal(serve.sources_n, 4);
    const struct source_config *source = serve.sources;
    assert_string_equal(source[0].book, "prod");
    assert_string_equal(source[0].prometheus.headers[0], "X-Scope-OrgID: a");
    assert_int_equal(source[0].prometheus.api, PROMETHEUS_QUERY);
    assert_int_equal(source[1].kind, SOURCE_KIND_SCRAPE);
    assert_int_equal(source[1].targets_n, 2);
    assert_int_equal(source[1].interval_ms, 30000);
    assert_true(str_eq(source[1].labels[0].value, STR("r1")));
    assert_string_equal(source[2].login.kubeconfig, "kube/config");
    assert_string_equal(source[3].book, "");
    assert_string_equal(source[3].cluster, "");
    assert_string_equal(source[3].tenant, "edge");
    assert_int_equal(source[3].drop_n, 1);
    let_go();
}

static void defaults_are_loopback_and_a_week(void **state)
{
    (void)state;
    assert_int_equal(read_text("serve: {db: a}\n"), ERR_OK);
    assert_string_equal(serve.listen, "127.0.0.1:9475");
    assert_int_equal(serve.history_ms, 7 * DAY_MS);
    assert_int_equal(serve.every_ms, 60000);
    assert_int_equal(serve.retain_ms, 0);
    let_go();
}

static void what_is_wrong_has_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } table[] = {
        {"serve: {}\n", "no database is named"},
        {"serve: [a]\n", "c.yaml:1:8: serve is a mapping"},
        {"serve: {lisen: x}\n", "c.yaml:1:9: unknown key 'lisen': did you mean 'listen'?"},
        {"serve: {db: a, every: 10ms}\n", "c.yaml:1:23: every is 1s at the least"},
        {"serve: {db: a, retain: 1h}\n", "c.yaml:1:24: retain is 1d at the least"},
        {"serve: {db: a, journal_cap: 5}\n", "c.yaml:1:29: '5' is no size"},
        {"serve: {db: a, journal_cap: 1MiB}\n", "256MiB at least"},
        {"serve: {db: a, listen: ''}\n", "c.yaml:1:24: an empty text"},
        {"serve: {db: a, tls: {cert: x}}\n", "c.yaml:1:21: tls needs both cert and key"},
        {"serve: {db: a, log: {level: loud}}\n", "c.yaml:1:29: level is error, warn"},
        {"serve: {db: a, limits: {conections: 1}}\n", "did you mean 'connections'?"},
        {"serve: {db: a}\nsources: {url: x}\n", "c.yaml:2:10: sources is a list"},
        {"serve: {db: a}\nsources:\n- {cluster: a}\n",
         "c.yaml:3:3: a source of kind prometheus needs url"},
        {"serve: {db: a}\nsources:\n- {url: 'prometheus:9090'}\n",
         "c.yaml:3:9: an address begins with http:// or https:// here"},
        {"serve: {db: a}\nsources:\n- {url: http//prometheus}\n", "c.yaml:3:9: an address begins"},
        {"serve: {db: a}\nsources:\n- {url: 'ftp://u:hidden@p'}\n",
         "c.yaml:3:9: an address begins"},
        {"serve: {db: a}\nsources:\n- {kind: prom, url: x}\n", "c.yaml:3:10: unknown kind 'prom'"},
        {"serve: {db: a}\nsources:\n- {kind: scrape}\n",
         "c.yaml:3:3: a source of kind scrape needs targets"},
        {"serve: {db: a}\nsources:\n- {kind: remote-write, url: x}\n",
         "c.yaml:3:24: unknown key 'url'"},
        {"serve: {db: a}\nsources:\n- {kind: remote-write}\n- {kind: remote-write, cluster: b}\n",
         "c.yaml:4:3: another receiver takes these samples"},
        {"serve: {db: a}\nsources:\n- {kind: kubernetes, cluster: b}\n- {kind: kubernetes, "
         "cluster: b}\n",
         "c.yaml:4:3: a second source of kind kubernetes"},
        {"serve: {db: a}\nsources:\n- {url: http://x, book: b, cluster: c}\n- {url: http://y, "
         "book: b, cluster: "
         "d}\n",
         "c.yaml:4:3: clusters 'c' and 'd' in one book"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_int_not_equal(read_text(table[i].text), ERR_OK);
        if (!strstr(error.text, table[i].says))
            fail_msg("of %s came: %s", table[i].text, error.text);
        let_go();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sections_are_read),
        cmocka_unit_test(defaults_are_loopback_and_a_week),
        cmocka_unit_test(what_is_wrong_has_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
