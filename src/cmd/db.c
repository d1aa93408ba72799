/* db: looking after the file that keeps the ledger. What changes it leaves the file that was there
 * under another name. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/help.h"
#include "query/window.h"
#include "report/text.h"
#include "store/maintain.h"
#include "util/suggest.h"

struct db_work {
    const struct options *options;
    const char *db;
    struct strbuf out; /* what is said on standard output */
    int status;
};

/* *ret_without: sound days without the sums of hours that they should have. */
static enum err verify(struct db_work *work, size_t *ret_without, struct error *err)
{
    struct names *names = names_new();
    struct store *store;
    struct span extent;
    enum err code = store_open(work->db, STORE_READ, names, &store, err);
    if (code == ERR_OK) {
        code = store_verify(store, ret_without, err);
        if (code == ERR_OK && store_extent(store, &extent, NULL) == ERR_OK) {
            strbuf_addf(&work->out, "%s is sound: ", work->db);
            text_time(&work->out, extent.from);
            strbuf_add(&work->out, STR(" to "));
            text_time(&work->out, extent.to);
            strbuf_addc(&work->out, '\n');
        } else if (code == ERR_OK) {
            strbuf_addf(&work->out, "%s is sound, and empty\n", work->db);
        }
        store_close(store);
    }
    names_free(names);
    if (code == ERR_STORE)
        error_prefix(err, "not sound");
    return code;
}

static enum err check(struct db_work *work, struct error *err)
{
    size_t without = 0;
    enum err code = verify(work, &without, err);
    if (without) {
        text_plural(&work->out, (wide_t)without, "day lacks", "days lack");
        strbuf_addf(&work->out,
                    " sums of hours, so that reports over parts of them are slow: make them "
                    "with %s db repair --db %s\n",
                    work->options->program, work->db);
    }
    return code;
}

static enum err backup(struct db_work *work, struct error *err)
{
    const char *to = work->options->positional_n > 1 ? work->options->positional[1] : NULL;
    if (!to)
        return error_set(err, ERR_USAGE, "db backup needs the name of the copy: %s db backup FILE",
                         work->options->program);
    enum err code = store_backup(work->db, to, err);
    if (code == ERR_OK)
        strbuf_addf(&work->out, "copied %s to %s, and read the copy\n", work->db, to);
    return code;
}

static void add_size(struct strbuf *out, int64_t bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    double size = (double)bytes;
    int unit = 0;
    for (; size >= 999.5 && unit < 4; unit++)
        size /= 1000;
    strbuf_addf(out, "%.*f %s", unit && size < 99.95 ? 1 : 0, size, units[unit]);
}

static enum err vacuum(struct db_work *work, struct error *err)
{
    int64_t before, after;
    enum err code = store_vacuum(work->db, &before, &after, err);
    if (code != ERR_OK)
        return code;
    strbuf_addf(&work->out, "%s: ", work->db);
    add_size(&work->out, before);
    strbuf_add(&work->out, STR(" before, "));
    add_size(&work->out, after);
    strbuf_add(&work->out, STR(" now\n"));
    return ERR_OK;
}

/* ---- repair ---- */

static void on_dropped(void *context, const struct store_dropped *dropped)
{
    struct db_work *work = context;
    strbuf_add(&work->out, STR("dropped: "));
    text_time(&work->out, dropped->hours.from);
    strbuf_add(&work->out, STR(" to "));
    text_time(&work->out, dropped->hours.to);
    if (dropped->node) {
        strbuf_add(&work->out, STR(", node "));
        if (*dropped->cluster) {
            text_clean(&work->out, str_of(dropped->cluster));
            strbuf_addc(&work->out, '/');
        }
        text_clean(&work->out, str_of(dropped->node));
    }
    strbuf_addf(&work->out, ": %s\n", dropped->why);
}

/* A name beside the database that nobody has. */
static void free_name(const char *db, const char *word, struct strbuf *ret)
{
    char day[16];
    day_name(clock_now(), NULL, day);
    strbuf_addf(ret, "%s.%s-%s", db, word, day);
    size_t n = ret->n;
    for (int i = 2; access(ret->text, F_OK) == 0; i++) {
        ret->n = n;
        strbuf_addf(ret, "-%d", i);
    }
}

static enum err move(const char *from, const char *to, struct error *err)
{
    if (rename(from, to) == 0 || errno == ENOENT)
        return ERR_OK;
    return error_set(err, ERR_IO, "moving %s to %s: %s", from, to, strerror(errno));
}

/* The damaged file and its log go to `kept`, then the sound one takes the name. */
static enum err swap(const char *db, const char *sound, const char *kept, struct error *err)
{
    static const char *const ends[] = {"-wal", "-shm", ""};
    enum err code = ERR_OK;
    for (size_t i = 0; i < sizeof ends / sizeof *ends && code == ERR_OK; i++) {
        struct strbuf from = {0}, to = {0};
        strbuf_addf(&from, "%s%s", db, ends[i]);
        strbuf_addf(&to, "%s%s", kept, ends[i]);
        code = move(from.text, to.text, err);
        strbuf_release(&from);
        strbuf_release(&to);
    }
    if (code == ERR_OK)
        code = move(sound, db, err);
    for (size_t i = 0; i < 2 && code == ERR_OK; i++) { /* of reading it: empty */
        struct strbuf left = {0};
        strbuf_addf(&left, "%s%s", sound, ends[i]);
        unlink(left.text);
        strbuf_release(&left);
    }
    return code;
}

static void say_repaired(struct db_work *work, const struct store_repaired *repaired,
                         const char *kept)
{
    struct strbuf *out = &work->out;
    strbuf_addf(out, "%s: kept ", work->db);
    text_plural(out, (wide_t)repaired->kept, "block", "blocks");
    strbuf_addf(out, ", dropped %llu", (unsigned long long)repaired->dropped);
    if (repaired->dropped_other)
        strbuf_addf(out, ", and %llu of what GPUs and hosts did beside it",
                    (unsigned long long)repaired->dropped_other);
    strbuf_addf(out, "\nthe file as it was: %s\n", kept);
    if (repaired->unreadable)
        strbuf_add(out, STR("parts of the file could not be read: what was in them is known only "
                            "as far as it is listed above\n"));
    if (repaired->unreadable || repaired->dropped || repaired->dropped_other)
        work->status = EXIT_INCOMPLETE;
    if (repaired->hours.from >= repaired->hours.to)
        return;
    char from[TIME_TEXT_MAX], to[TIME_TEXT_MAX];
    strbuf_addf(out,
                "to book again what was dropped: %s collect --db %s --rebook --window %s,%s and "
                "the sources\n",
                work->options->program, work->db, time_format(repaired->hours.from, from),
                time_format(repaired->hours.to, to));
    work->status = EXIT_INCOMPLETE;
}

static enum err make_sums(struct db_work *work, size_t days, struct error *err)
{
    enum err code = store_add_hour_sums(work->db, err);
    if (code == ERR_OK) {
        strbuf_add(&work->out, STR("made sums of hours of "));
        text_plural(&work->out, (wide_t)days, "day", "days");
        strbuf_addc(&work->out, '\n');
    }
    return code;
}

static enum err repair(struct db_work *work, struct error *err)
{
    struct store_repair options = {.dropped = on_dropped, .context = work};
    struct store_repaired repaired;
    struct strbuf sound = {0}, kept = {0};
    size_t without = 0;
    if (verify(work, &without, NULL) == ERR_OK) {
        if (without)
            return make_sums(work, without, err);
        strbuf_add(&work->out, STR("nothing to repair\n"));
        return ERR_OK;
    }
    strbuf_clear(&work->out);
    free_name(work->db, "repaired", &sound);
    free_name(work->db, "damaged", &kept);
    enum err code = store_repair(work->db, sound.text, &options, &repaired, err);
    if (code == ERR_OK) {
        struct db_work copy = {.options = work->options, .db = sound.text};
        code = verify(&copy, NULL, err);
        strbuf_release(&copy.out);
    }
    if (code == ERR_OK)
        code = swap(work->db, sound.text, kept.text, err);
    if (code == ERR_OK)
        say_repaired(work, &repaired, kept.text);
    strbuf_release(&sound);
    strbuf_release(&kept);
    return code;
}

/* ---- the command ---- */

static const struct action {
    const char *name;
    enum err (*run)(struct db_work *work, struct error *err);
    size_t more; /* words after it */
} actions[] = {
    {"check", check, 0}, {"repair", repair, 0}, {"vacuum", vacuum, 0}, {"backup", backup, 1}};
#define ACTIONS (sizeof actions / sizeof *actions)

static const struct action *action_of(const struct options *options, struct error *err)
{
    const char *names[ACTIONS];
    for (size_t i = 0; i < ACTIONS; i++)
        names[i] = actions[i].name;
    if (options->positional_n == 0) {
        error_set(err, ERR_USAGE, "db needs to know what to do: check, repair, vacuum or backup");
        return NULL;
    }
    const char *word = options->positional[0];
    for (size_t i = 0; i < ACTIONS; i++) {
        if (strcmp(word, actions[i].name) != 0)
            continue;
        if (options->positional_n <= 1 + actions[i].more)
            return &actions[i];
        error_set(err, ERR_USAGE, "db %s: unexpected argument '%s'", word,
                  options->positional[1 + actions[i].more]);
        return NULL;
    }
    const char *near = suggest(str_of(word), names, ACTIONS);
    if (near)
        error_set(err, ERR_USAGE, "db does not know '%s': did you mean '%s'?", word, near);
    else
        error_set(err, ERR_USAGE,
                  "db does not know '%s': it knows check, repair, vacuum and backup", word);
    return NULL;
}

int cmd_db(const struct options *options)
{
    struct error err = {0};
    struct db_work work = {.options = options, .db = options_text(options, OPTION_DB)};
    const struct action *action = action_of(options, &err);
    if (!action)
        return fail(&err);
    if (!work.db)
        work.db = config_database(options, &err);
    if (!work.db)
        return fail(&err);
    enum err code = action->run(&work, &err);
    int status = work.out.n ? print_text(&work.out) : EXIT_DONE;
    if (code != ERR_OK)
        return fail(&err);
    return status == EXIT_DONE ? work.status : status;
}
