/* Exec plugins: a command of the kubeconfig that prints credentials (gke-gcloud-auth-plugin, aws
 * eks get-token, kubelogin …).
 *
 * It is run as it stands, by argv, without a shell; standard input is /dev/null, since nobody is
 * there to be asked. It gets a process group of its own, so that what it starts ends with it, and
 * time and output are limited. What it prints is a secret and is wiped; of what it says on standard
 * error the first line is shown where it fails. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "source/kube_access_impl.h"

#define SAID_MAX ((size_t)4096) /* bytes kept of standard error */
#define SAID_SHOWN 200

extern char **environ;

static void free_words(char **words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(words[i]);
    free(words);
}

void kube_exec_release(struct kube_exec *exec)
{
    free_words(exec->argv, exec->argc);
    free_words(exec->env, exec->env_n);
    free(exec->version);
    free(exec->hint);
    free(exec->info);
}

/* Our environment without what the plugin's own replaces; the texts are borrowed but for *ret_info.
 */
static char **environment_of(const struct kube_exec *exec, char **ret_info)
{
    size_t n = 0, ours = 0;
    while (environ[ours])
        ours++;
    char **env = mem_zalloc(ours + exec->env_n + 2, sizeof *env);
    for (size_t i = 0; i < ours; i++) {
        size_t name = strcspn(environ[i], "=") + 1;
        bool replaced = strncmp(environ[i], "KUBERNETES_EXEC_INFO=", 21) == 0;
        for (size_t k = 0; !replaced && k < exec->env_n; k++)
            replaced = strncmp(environ[i], exec->env[k], name) == 0;
        if (!replaced)
            env[n++] = environ[i];
    }
    for (size_t i = 0; i < exec->env_n; i++)
        env[n++] = exec->env[i];
    *ret_info = NULL;
    if (exec->info) {
        struct strbuf info = {0};
        strbuf_addf(&info, "KUBERNETES_EXEC_INFO=%s", exec->info);
        env[n++] = *ret_info = info.text;
    }
    return env;
}

/* Standard input from nowhere, output and errors to the pipes, signals as at a program's start. */
static int spawn(const struct kube_exec *exec, char **env, const int out[2], const int errors[2],
                 pid_t *ret)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_adddup2(&actions, errors[1], 2);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &none);
    int rc = posix_spawnp(ret, exec->argv[0], &actions, &attributes, exec->argv, env);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return rc;
}

/* Read both pipes to their ends. NULL: done; else why not. */
static const char *read_pipes(int out, int errors, time_ms deadline, size_t output_max,
                              struct strbuf *ret, struct strbuf *said)
{
    struct pollfd fds[2] = {{out, POLLIN, 0}, {errors, POLLIN, 0}};
    char buf[4096];
    const char *why = NULL;
    while (!why && (fds[0].fd >= 0 || fds[1].fd >= 0)) {
        time_ms left = deadline - clock_monotonic();
        int ready = left > 0 ? poll(fds, 2, (int)left) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            why = "it did not end in time";
        for (int i = 0; !why && i < 2; i++) {
            if (fds[i].fd < 0 || !fds[i].revents)
                continue;
            ssize_t n = read(fds[i].fd, buf, sizeof buf);
            if (n <= 0)
                fds[i].fd = -1;
            else if (i == 1)
                strbuf_add(said, (struct str){buf, said->n < SAID_MAX ? (size_t)n : 0});
            else if (ret->n + (size_t)n > output_max)
                why = "it printed too much";
            else
                strbuf_add(ret, (struct str){buf, (size_t)n});
        }
    }
    explicit_bzero(buf, sizeof buf);
    return why;
}

/* The first line, printable. */
static void first_line(const struct strbuf *said, char to[SAID_SHOWN + 1])
{
    size_t n = 0;
    for (; n < SAID_SHOWN && n < said->n && said->text[n] != '\n'; n++)
        to[n] = said->text[n] >= 0x20 && said->text[n] != 0x7f ? said->text[n] : ' ';
    to[n] = '\0';
}

static enum err wait_for(pid_t pid, const char *why, const struct kube_exec *exec,
                         const struct strbuf *said, struct error *err)
{
    int status = 0;
    char line[SAID_SHOWN + 1];
    if (why)
        kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    kill(-pid, SIGKILL); /* what it left behind */
    first_line(said, line);
    const char *colon = *line ? ": " : "";
    if (why)
        return error_set(err, ERR_LIMIT, "the exec plugin %s of the kubeconfig failed: %s%s%s",
                         exec->argv[0], why, colon, line);
    if (WIFSIGNALED(status))
        return error_set(err, ERR_IO, "the exec plugin %s of the kubeconfig ended by signal %d%s%s",
                         exec->argv[0], WTERMSIG(status), colon, line);
    if (WEXITSTATUS(status) != 0)
        return error_set(err, ERR_IO, "the exec plugin %s of the kubeconfig ended with %d%s%s",
                         exec->argv[0], WEXITSTATUS(status), colon, line);
    return ERR_OK;
}

enum err kube_exec_run(const struct kube_exec *exec, time_ms timeout_ms, size_t output_max,
                       struct strbuf *ret, struct error *err)
{
    int out[2] = {-1, -1}, errors[2] = {-1, -1};
    struct strbuf said = {0};
    char *info;
    char **env = environment_of(exec, &info);
    enum err e = ERR_OK;
    pid_t pid;
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(errors, O_CLOEXEC) != 0) {
        e = error_set(err, ERR_IO, "cannot run the exec plugin %s: %s", exec->argv[0],
                      strerror(errno));
        goto out;
    }
    int rc = spawn(exec, env, out, errors, &pid);
    if (rc != 0) {
        e = error_set(err, ERR_IO, "cannot run the exec plugin %s of the kubeconfig: %s%s%.300s",
                      exec->argv[0], strerror(rc), exec->hint ? "; " : "",
                      exec->hint ? exec->hint : "");
        goto out;
    }
    close(out[1]);
    close(errors[1]);
    out[1] = errors[1] = -1;
    const char *why =
        read_pipes(out[0], errors[0], clock_monotonic() + timeout_ms, output_max, ret, &said);
    e = wait_for(pid, why, exec, &said, err);
out:
    for (int i = 0; i < 2; i++) {
        if (out[i] >= 0)
            close(out[i]);
        if (errors[i] >= 0)
            close(errors[i]);
    }
    free(env);
    free(info);
    strbuf_release(&said);
    return e;
}
