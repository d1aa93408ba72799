/* Files and folders that a configuration names: what is said of those that cannot be used. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../lib/unit.h"
#include "serve/serve_check.h"
#include "serve/serve_config.h"

static char folder[TEMPORARY_MAX];

static void put(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* There: "secret", "empty", the list "targets.json", the folder "here". */
static int make_folder(void **state)
{
    (void)state;
    temporary(folder, "test_serve_check");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    put("secret", "s3cret\n");
    put("empty", " \n");
    put("url", "https://hooks.example/T0/x?sig=s3cret\n");
    put("bare", "hooks.example/s3cret\n");
    put("targets.json", "[{\"targets\": [\"gpu-1:9400\"]}]\n");
    put("wrong.json", "[{\"targets\": [\"http://gpu-1:9400\"]}]\n");
    return mkdir("here", 0700);
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"secret", "empty",        "url",
                                        "bare",   "targets.json", "wrong.json"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(names[i]);
    rmdir("here");
    return chdir("/") || rmdir(folder);
}

/* As `config check` does. */
static void look(const char *text, struct error *err)
{
    struct config *config = config_new();
    struct serve_config serve = {0};
    err->text[0] = 0;
    enum err code = config_read_text(config, "c.yaml", str_of(text), err);
    if (!code)
        code = serve_config_read(config, &serve, err);
    if (!code)
        code = serve_check_files(config, err);
    if (!code)
        code = alert_check(&serve.alerts, err);
    assert_int_equal(code != ERR_OK, err->text[0] != 0);
    serve_config_release(&serve);
    config_free(config);
}

static void what_is_there_is_fine(void **state)
{
    static const char *const texts[] = {
        "serve: {db: gpu.db}\n",
        "serve: {db: here/gpu.db, journal: here}\n",
        "serve: {db: gpu.db, journal: here/new}\n",
        "serve: {db: secret}\n", /* what kind of file it is, others find out */
        "sources:\n- {url: 'http://p', bearer_token_file: secret, user: u, password_file: "
        "secret}\n",
        "sources:\n- {kind: scrape, files: [targets.json, 'none-*.json']}\n",
        "sources:\n- {kind: scrape, files: targets.json}\n",
        "sources:\n- {kind: kube-json, files: [targets.json]}\n",
        "alerts: {state: here/told.json, receivers: [{name: a, kind: webhook, url_file: url,\n"
        "  secret_file: secret, bearer_token_file: secret}]}\n",
    };
    struct error err;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        look(texts[i], &err);
        if (err.text[0])
            fail_msg("%s\nsays: %s", texts[i], err.text);
    }
}

#define SOURCE(keys) "sources:\n- {url: 'http://p',\n   " keys "}\n"
#define ALERT(keys) "alerts:\n  receivers:\n  - {name: a, kind: webhook,\n     " keys "}\n"
#define NONE "cannot read none: No such file or directory"

static void what_is_not_there_is_said_with_its_place(void **state)
{
    static const struct {
        const char *text, *place, *says;
    } cases[] = {
        {"serve:\n  db: none/gpu.db\n", "c.yaml:2:7: ", "gpu.db cannot be made in none"},
        {"serve:\n  db: here\n", "c.yaml:2:7: ", "here is a folder: name a file"},
        {"serve:\n  journal: none/a\n", "c.yaml:2:12: ", "a cannot be made in none"},
        {"serve:\n  journal: secret/a\n", "c.yaml:2:12: ", "Not a directory"},
        {"serve:\n  journal: secret\n", "c.yaml:2:12: ", "secret is a file: name a folder"},
        {"serve:\n  tls: {cert: none, key: secret}\n", "c.yaml:2:15: ", NONE},
        {"serve:\n  tls: {cert: secret, key: none}\n", "c.yaml:2:28: ", NONE},
        {"serve:\n  tls: {cert: secret, key: secret, client_ca: none}\n", "c.yaml:2:47: ", NONE},
        {"serve:\n  tls: {cert: secret, key: secret, client_ca: secret}\n",
         "c.yaml:2:47: ", "secret has no certificate in PEM"},
        {SOURCE("bearer_token_file: none"), "c.yaml:3:23: ", NONE},
        {SOURCE("bearer_token_file: here"), "c.yaml:3:23: ", "Is a directory"},
        {SOURCE("bearer_token_file: empty"), "c.yaml:3:23: ", "empty is empty"},
        {SOURCE("user: u, password_file: none"), "c.yaml:3:28: ", NONE},
        {SOURCE("client_cert: none"), "c.yaml:3:17: ", NONE},
        {SOURCE("client_key: none"), "c.yaml:3:16: ", NONE},
        {SOURCE("ca_file: none"), "c.yaml:3:13: ", NONE},
        {SOURCE("ca_file: secret"), "c.yaml:3:13: ", "secret has no certificate in PEM"},
        {"sources:\n- {kind: kubernetes, kubeconfig: none}\n", "c.yaml:2:34: ", NONE},
        {"sources:\n- {kind: kube-json, files: [targets.json, none]}\n", "c.yaml:2:43: ", NONE},
        {"sources:\n- {kind: scrape, files: [targets.json, none]}\n",
         "c.yaml:2:40: ", "none: there is no such file"},
        {"sources:\n- {kind: scrape, files: wrong.json}\n",
         "c.yaml:2:25: ", "wrong.json:1:15: 'http://gpu-1:9400' is no target"},
        {ALERT("url_file: none"), "c.yaml:4:16: ", NONE},
        {ALERT("url_file: empty"), "c.yaml:4:16: ", "empty is empty"},
        {ALERT("url_file: bare"), "c.yaml:3:5: ", "bare: an address begins with http"},
        {ALERT("url: 'https://'"), "c.yaml:3:5: ", "No host"},
        {ALERT("url_file: url, secret_file: none"), "c.yaml:4:34: ", NONE},
        {ALERT("url_file: url, ca_file: none"), "c.yaml:4:30: ", NONE},
        {ALERT("url_file: url, bearer_token_file: none"), "c.yaml:4:40: ", NONE},
        {"alerts:\n  state: none/told\n  receivers: [{name: a, kind: slack, url_file: url}]\n",
         "c.yaml:2:10: ", "told cannot be made in none"},
    };
    struct error err;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        look(cases[i].text, &err);
        if (strncmp(err.text, cases[i].place, strlen(cases[i].place)) != 0 ||
            !strstr(err.text, cases[i].says) || strstr(err.text, "s3cret"))
            fail_msg("%s\nsays: %s", cases[i].text, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_is_fine),
        cmocka_unit_test(what_is_not_there_is_said_with_its_place),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
