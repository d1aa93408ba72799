/* Access: tokens, scopes, proxies, certificates, and where one may listen. */
#include "serve/auth.h"

#include <string.h>

#include "../../lib/unit.h"
#include "serve/auth_impl.h"
#include "util/memory.h"

/* sha256("secret"), sha256("other"): printf secret | sha256sum */
#define SECRET "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
#define OTHER "sha256:d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa"

static struct auth *read_access(const char *text, struct error *err)
{
    struct config_file *file = NULL;
    struct auth *auth = auth_new();
    struct error none = {0};
    assert_int_equal(config_file_parse("access.yaml", str_of(text), &file, &none), ERR_OK);
    enum err code = auth_read(auth, config_root(file), err);
    config_file_free(file); /* auth has copied what it needs */
    if (code == ERR_OK)
        return auth;
    auth_free(auth);
    return NULL;
}

static struct auth *good(const char *text)
{
    struct error err = {0};
    struct auth *auth = read_access(text, &err);
    if (!auth)
        fail_msg("%s", err.text);
    return auth;
}

static struct str user; /* what the header of the proxy says */
static struct str header(const void *connection, const char *name)
{
    (void)connection;
    assert_string_equal(name, "X-User");
    return user;
}

static struct access ask(const struct auth *auth, const char *authorization, const char *peer,
                         const char *cn, const char **ret_why)
{
    struct access access;
    struct auth_proof proof = {.authorization = str_of(authorization),
                               .peer = str_of(peer),
                               .certificate_cn = str_of(cn),
                               .header = header};
    auth_decide(auth, &proof, &access, ret_why);
    return access;
}

static const char *why;

static void without_any_access_everybody_may_do_everything(void **state)
{
    (void)state;
    struct auth *auth = auth_new();
    struct access access = ask(auth, "", "127.0.0.1", "", &why);
    assert_true(access.scopes & SCOPE_BIT(SCOPE_READ));
    assert_true(access.scopes & SCOPE_BIT(SCOPE_WRITE));
    assert_false(access.view.limited);
    /* a token that nobody asked for is no reason to refuse */
    assert_true(ask(auth, "Bearer x", "127.0.0.1", "", &why).scopes != 0);
    auth_free(auth);
}

static void a_token_is_known_by_its_hash(void **state)
{
    (void)state;
    struct auth *auth = good("tokens: [{name: a, hash: '" SECRET "', scopes: [write]}, "
                             "{name: b, hash: '" OTHER "', teams: [x, y], namespaces: [n]}]");
    struct access access = ask(auth, "Bearer secret", "1.2.3.4", "", &why);
    assert_int_equal(access.scopes, SCOPE_BIT(SCOPE_WRITE));
    assert_true(str_eq(access.identity, STR("a")));
    access = ask(auth, "bearer other", "1.2.3.4", "", &why);
    assert_int_equal(access.scopes, SCOPE_BIT(SCOPE_READ) | SCOPE_BIT(SCOPE_METRICS));
    assert_true(access.view.limited);
    assert_int_equal(access.view.teams_n, 2);
    assert_true(str_eq(access.view.teams[1], STR("y")));
    assert_true(str_eq(access.view.namespaces[0], STR("n")));
    assert_true(access.view.digest != 0);
    const char *bad[] = {"Bearer Secret", "Bearer secret ", "Bearer ",      "Bearer", "secret",
                         "Basic secret",  "Bearer  secret", "Bearer secre", ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(ask(auth, bad[i], "127.0.0.1", "", &why).scopes, 0);
        assert_non_null(why);
    }
    auth_free(auth);
}

static void views_with_other_names_have_other_digests(void **state)
{
    (void)state;
    struct auth *auth = good("tokens: [{name: a, hash: '" SECRET "', teams: [x]}, "
                             "{name: b, hash: '" OTHER "', namespaces: [x]}]");
    struct access a = ask(auth, "Bearer secret", "", "", &why);
    struct access b = ask(auth, "Bearer other", "", "", &why);
    assert_true(a.view.digest != b.view.digest);
    auth_free(auth);
}

static void a_wrong_token_does_not_fall_back_to_something_weaker(void **state)
{
    (void)state;
    struct auth *auth = good("allow_anonymous: true\ntokens: [{name: a, hash: '" SECRET "'}]\n"
                             "certificates: [{name: '*'}]");
    assert_int_equal(ask(auth, "Bearer wrong", "127.0.0.1", "somebody", &why).scopes, 0);
    /* nothing at all is anonymous, which reads and never writes where there are tokens */
    assert_int_equal(ask(auth, "", "127.0.0.1", "", &why).scopes,
                     SCOPE_BIT(SCOPE_READ) | SCOPE_BIT(SCOPE_METRICS));
    auth_free(auth);
}

static void a_header_counts_only_from_the_proxys_addresses(void **state)
{
    (void)state;
    struct auth *auth = good("proxy: {addresses: [10.1.0.0/16, '2001:db8::/32', 192.168.0.9], "
                             "header: X-User, users: [{name: 'ann-*'}]}");
    user = STR("ann-1");
    const struct {
        const char *peer;
        bool fits;
    } peers[] = {{"10.1.0.0", true},     {"10.1.255.255", true},
                 {"10.2.0.0", false},    {"192.168.0.9", true},
                 {"192.168.0.8", false}, {"2001:db8:1::7", true},
                 {"2001:db9::1", false}, {"", false},
                 {"nonsense", false},    {"::ffff:10.1.2.3", true}};
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++)
        assert_int_equal(ask(auth, "", peers[i].peer, "", &why).scopes != 0, peers[i].fits);
    user = STR("bob");
    assert_int_equal(ask(auth, "", "10.1.0.1", "", &why).scopes, 0);
    user = STR_NONE;
    assert_int_equal(ask(auth, "", "10.1.0.1", "", &why).scopes, 0);
    auth_free(auth);
}

static void a_certificate_has_the_rights_of_its_name(void **state)
{
    (void)state;
    struct auth *auth = good("certificates: [{name: reader, scopes: [read]}, "
                             "{name: 'agent-*', scopes: [write]}]");
    assert_int_equal(ask(auth, "", "", "agent-7", &why).scopes, SCOPE_BIT(SCOPE_WRITE));
    assert_true(ask(auth, "", "", "reader", &why).scopes & SCOPE_BIT(SCOPE_READ));
    assert_int_equal(ask(auth, "", "", "readers", &why).scopes, 0);
    assert_int_equal(ask(auth, "", "", "", &why).scopes, 0);
    auth_free(auth);
}

static void listening_elsewhere_needs_access(void **state)
{
    (void)state;
    struct error err = {0};
    struct auth *open = auth_new(), *tokens = good("tokens: [{name: a, hash: '" SECRET "'}]");
    struct auth *certificates = good("certificates: [{name: a}]");
    struct auth *anonymous = good("allow_anonymous: true");
    const char *loopback[] = {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1"};
    const char *elsewhere[] = {":1", "0.0.0.0:1", "[::]:1", "10.0.0.1:1", "example.com:1"};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(auth_check_listen(open, loopback[i], false, &err), ERR_OK);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(auth_check_listen(open, elsewhere[i], false, &err), ERR_CONFIG);
        assert_int_equal(auth_check_listen(tokens, elsewhere[i], false, &err), ERR_OK);
        assert_int_equal(auth_check_listen(anonymous, elsewhere[i], false, &err), ERR_OK);
        assert_int_equal(auth_check_listen(certificates, elsewhere[i], true, &err), ERR_OK);
    }
    auth_free(open);
    auth_free(tokens);
    auth_free(certificates);
    auth_free(anonymous);
}

static void tokens_are_new_each_time_and_hash_to_what_is_printed(void **state)
{
    (void)state;
    char token[AUTH_TOKEN_MAX], hash[AUTH_HASH_MAX], again[AUTH_TOKEN_MAX], text[256];
    struct error err = {0};
    assert_int_equal(auth_token_new(token, hash, &err), ERR_OK);
    assert_int_equal(auth_token_new(again, hash, &err), ERR_OK);
    assert_string_not_equal(token, again);
    assert_int_equal(strlen(token), 4 + 43); /* 256 bits in 6 bits a character */
    snprintf(text, sizeof text, "tokens: [{name: a, hash: '%s'}]", hash);
    struct auth *auth = good(text);
    snprintf(text, sizeof text, "Bearer %s", again);
    assert_true(ask(auth, text, "", "", &why).scopes != 0);
    snprintf(text, sizeof text, "Bearer %s", token);
    assert_int_equal(ask(auth, text, "", "", &why).scopes, 0);
    auth_free(auth);
}

static void what_is_wrong_is_said_with_its_place(void **state)
{
    (void)state;
    const struct {
        const char *text, *word;
    } cases[] = {
        {"tokens: [{name: a}]", "sha256:"},
        {"tokens: [{name: a, hash: 'sha256:12'}]", "64 hexadecimal"},
        {"tokens: [{hash: '" SECRET "'}]", "name"},
        {"tokens: [{name: a, hash: '" SECRET "', scopes: [admin]}]", "admin"},
        {"tokens: [{name: a, hash: '" SECRET "', scopes: []}]", "list of scopes"},
        {"tokens: [{name: a, hash: '" SECRET "', teams: []}]", "list of names"},
        {"tokens: {name: a}", "list"},
        {"token: []", "tokens"},
        {"proxy: {header: X, addresses: [10.0.0.0/33]}", "10.0.0.0/33"},
        {"proxy: {addresses: [10.0.0.0/8]}", "header"},
        {"certificates: [{name: a, hash: '" SECRET "'}]", "hash"},
        {"[]", "mapping"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = {0};
        struct auth *auth = read_access(cases[i].text, &err);
        if (auth || !strstr(err.text, cases[i].word) || !strstr(err.text, "access.yaml:1:"))
            fail_msg("%s: %s", cases[i].text, auth ? "accepted" : err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_any_access_everybody_may_do_everything),
        cmocka_unit_test(a_token_is_known_by_its_hash),
        cmocka_unit_test(views_with_other_names_have_other_digests),
        cmocka_unit_test(a_wrong_token_does_not_fall_back_to_something_weaker),
        cmocka_unit_test(a_header_counts_only_from_the_proxys_addresses),
        cmocka_unit_test(a_certificate_has_the_rights_of_its_name),
        cmocka_unit_test(listening_elsewhere_needs_access),
        cmocka_unit_test(tokens_are_new_each_time_and_hash_to_what_is_printed),
        cmocka_unit_test(what_is_wrong_is_said_with_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
