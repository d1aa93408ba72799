/* top: GPUs now, on the whole screen, from a `gputally serve`. Where standard output is no terminal
 * the view is printed once.
 *
 * The terminal is put back whatever ends the program: by keys, by a signal that is caught, or by an
 * error. Keys are read between two looks at the server; a slow server does not keep keys waiting
 * longer than its connection's time limit. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/output.h"
#include "cmd/progress.h"
#include "report/top.h"
#include "source/http.h"

#define TOP_SERVER "http://127.0.0.1:9475"
#define EVERY_MS 2000
#define ANSWER_MAX ((size_t)256 << 20)
#define FILTER_MAX 60

struct top {
    struct http_site *site;
    struct http_client *client;
    struct strbuf body;
    struct top_list list;
    struct top_view view;
    char filter[FILTER_MAX + 1];
    size_t filter_n, shown;
    struct error trouble;
    char currency[8];
    bool raw;
    struct termios before;
};

/* ---- the server ---- */

static enum err begin(void *context, const struct http_answer *answer, struct error *err)
{
    (void)answer, (void)err;
    strbuf_clear(&((struct top *)context)->body);
    return ERR_OK;
}

static enum err piece(void *context, struct str bytes, struct error *err)
{
    struct top *top = context;
    if (top->body.n + bytes.n > ANSWER_MAX)
        return error_set(err, ERR_LIMIT, "the list of GPUs is too long");
    strbuf_add(&top->body, bytes);
    return ERR_OK;
}

static enum err finish(void *context, struct error *err)
{
    (void)context, (void)err;
    return ERR_OK;
}

static enum err ask(struct top *top, const char *path, struct error *err)
{
    struct http_answer answer = {0};
    struct http_request request = {
        .path = path, .begin = begin, .piece = piece, .finish = finish, .context = top};
    enum err code = http_ask(top->client, &request, &answer, err);
    if (code == ERR_NETWORK)
        error_prefix(err, "gputally serve (--server URL)");
    return code;
}

static enum err look(struct top *top, struct error *err)
{
    enum err code = ask(top, "/api/v1/gpus", err);
    if (code == ERR_OK)
        code = top_read(strbuf_str(&top->body), &top->list, err);
    top->view.now = clock_now();
    return code;
}

static enum err open_server(struct top *top, const struct options *options, struct error *err)
{
    const char *url = options_text(options, OPTION_SERVER);
    struct http_site_options site = {.url = url ? url : TOP_SERVER,
                                     .bearer_token_file =
                                         options_text(options, OPTION_BEARER_TOKEN_FILE),
                                     .client_cert = options_text(options, OPTION_CLIENT_CERT),
                                     .client_key = options_text(options, OPTION_CLIENT_KEY),
                                     .ca_file = options_text(options, OPTION_CA_FILE),
                                     .connect_timeout_ms = 3000,
                                     .idle_timeout_ms = 10000,
                                     .retries = 0,
                                     .backoff_ms = 100};
    enum err code = http_site_new(&site, &top->site, err);
    if (code == ERR_OK)
        top->client = http_client_new(top->site, NULL);
    if (code == ERR_OK)
        top->view.title = http_site_url(top->site);
    return code;
}

/* ---- the terminal ---- */

static void say(const char *text)
{
    if (write(STDOUT_FILENO, text, strlen(text)) < 0)
        return;
}

static void take_terminal(struct top *top)
{
    if (tcgetattr(STDIN_FILENO, &top->before) != 0)
        return;
    struct termios raw = top->before;
    raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    top->raw = true;
    say("\033[?1049h\033[?25l"); /* another screen, no cursor */
}

static void give_terminal(struct top *top)
{
    if (!top->raw)
        return;
    say("\033[?25h\033[?1049l");
    tcsetattr(STDIN_FILENO, TCSANOW, &top->before);
    top->raw = false;
}

static void measure(struct top *top)
{
    struct winsize size;
    top->view.lines = 24;
    top->view.columns = 80;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col) {
        top->view.lines = size.ws_row;
        top->view.columns = size.ws_col;
    }
}

/* Every line is written over the one of before, and the rest of it cleared: no flicker. */
static void draw(struct top *top)
{
    struct strbuf text = {0}, screen = {0};
    measure(top);
    top->view.lines--; /* the last one stays empty: a line break there would scroll */
    top->view.trouble = *top->trouble.text ? top->trouble.text : NULL;
    top->view.filter = (struct str){top->filter, top->filter_n};
    top->shown = top_render(&top->list, &top->view, &text);
    strbuf_add(&screen, STR("\033[H"));
    for (size_t i = 0; i < text.n; i++) {
        if (text.text[i] == '\n')
            strbuf_add(&screen, STR("\033[K"));
        strbuf_addc(&screen, text.text[i]);
    }
    strbuf_add(&screen, STR("\033[J"));
    say(screen.text);
    strbuf_release(&text);
    strbuf_release(&screen);
}

/* ---- keys ---- */

static void type_filter(struct top *top, char key)
{
    if (key == '\r' || key == '\n' || key == 27)
        top->view.typing = false;
    if (key == 27)
        top->filter_n = 0;
    if ((key == 127 || key == 8) && top->filter_n)
        top->filter_n--;
    if (key >= 32 && key < 127 && top->filter_n < FILTER_MAX)
        top->filter[top->filter_n++] = key;
    top->view.offset = 0;
}

static void scroll(struct top *top, long by)
{
    long most = top->shown ? (long)top->shown - 1 : 0, at = (long)top->view.offset + by;
    top->view.offset = (size_t)(at < 0 ? 0 : at > most ? most : at);
}

/* An arrow or page key: ESC [ A. */
static void take_arrow(struct top *top, char key)
{
    long page = (long)top->view.lines > 6 ? (long)top->view.lines - 5 : 1;
    scroll(top, key == 'A' ? -1 : key == 'B' ? 1 : key == '5' ? -page : key == '6' ? page : 0);
}

/* False: it is to end. */
static bool take_key(struct top *top, char key)
{
    struct top_view *view = &top->view;
    long page = (long)view->lines > 6 ? (long)view->lines - 5 : 1;
    if (view->typing) {
        type_filter(top, key);
        return true;
    }
    switch (key) {
    case 'q':
        return false;
    case 's':
        view->sort = (enum top_sort)((view->sort + 1) % TOP_SORTS);
        view->teams = false;
        break;
    case 't':
        view->teams = !view->teams;
        view->offset = 0;
        break;
    case '/':
        view->typing = true;
        top->filter_n = 0;
        break;
    case 'j':
    case 'k':
        scroll(top, key == 'j' ? 1 : -1);
        break;
    case ' ':
        scroll(top, page);
        break;
    case 'g':
        view->offset = 0;
        break;
    default:
        break;
    }
    return true;
}

/* What was read at once: a sequence of a special key, or what was typed. */
static bool take_keys(struct top *top, const char *keys, size_t n)
{
    if (n >= 3 && keys[0] == 27 && keys[1] == '[' && !top->view.typing) {
        take_arrow(top, keys[2]);
        return true;
    }
    for (size_t i = 0; i < n; i++)
        if (!take_key(top, keys[i]))
            return false;
    return true;
}

static bool wait_for_keys(struct top *top, time_ms until)
{
    for (;;) {
        time_ms left = until - clock_monotonic();
        struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
        int n = poll(&in, 1, left > 0 ? (int)left : 0);
        char keys[16];
        if (signals_caught())
            return false;
        if (n > 0) {
            ssize_t got = read(STDIN_FILENO, keys, sizeof keys);
            if (got == 0 || (got < 0 && errno != EINTR))
                return false;
            if (got > 0 && !take_keys(top, keys, (size_t)got))
                return false;
            draw(top);
        } else if (n < 0) {
            draw(top); /* the window has another size */
        }
        if (left <= 0)
            return true;
    }
}

static void live(struct top *top)
{
    take_terminal(top);
    do {
        draw(top);
        top->trouble = (struct error){0};
        look(top, &top->trouble);
        draw(top);
    } while (wait_for_keys(top, clock_monotonic() + EVERY_MS));
    give_terminal(top);
}

/* ---- the command ---- */

static enum err once(struct top *top, struct error *err)
{
    struct strbuf text = {0};
    top->view.columns = output_columns();
    top_render(&top->list, &top->view, &text);
    enum err code = output_write(strbuf_str(&text), err);
    strbuf_release(&text);
    return code == ERR_OK ? output_finish(err) : code;
}

static enum err choose_sort(struct top *top, const struct options *options, struct error *err)
{
    const char *word = options_text(options, OPTION_SORT);
    top->view.sort = TOP_SORT_IDLE;
    if (!word)
        return ERR_OK;
    for (int sort = 0; sort < TOP_SORTS; sort++)
        if (strcmp(word, top_sort_words[sort]) == 0) {
            top->view.sort = (enum top_sort)sort;
            return ERR_OK;
        }
    return options_refuse(options, OPTION_SORT, err,
                          "'%s' is none of node, cost, idle, use, memory, power", word);
}

int cmd_top(const struct options *options)
{
    struct top top = {.view = {.colour = output_colour()}};
    top.view.currency = top.currency;
    struct error err = {0};
    enum err code = choose_sort(&top, options, &err);
    if (code == ERR_OK)
        code = open_server(&top, options, &err);
    if (code == ERR_OK)
        code = ask(&top, "/api/v1/meta", &err);
    if (code == ERR_OK)
        top_currency(strbuf_str(&top.body), top.currency, sizeof top.currency);
    if (code == ERR_OK) /* the first look: what is wrong is said before the screen is taken */
        code = look(&top, &err);
    if (code == ERR_OK && output_is_terminal() && isatty(STDIN_FILENO))
        live(&top);
    else if (code == ERR_OK)
        code = once(&top, &err);
    http_client_free(top.client);
    http_site_free(top.site);
    strbuf_release(&top.body);
    top_list_release(&top.list);
    return code == ERR_OK ? EXIT_DONE : fail(&err);
}
