/* Telling systemd how the service does (sd_notify(3)): a datagram to the socket that NOTIFY_SOCKET
 * names. Without it every call does nothing, so that nothing depends on systemd. */
#ifndef GPUTALLY_SERVE_NOTIFY_H
#define GPUTALLY_SERVE_NOTIFY_H

#include "util/clock.h"

/* "READY=1", "STOPPING=1", "RELOADING=1\nMONOTONIC_USEC=…", "WATCHDOG=1", "STATUS=…"; several with
 * newlines. False: nobody listens, or the message did not get there. Any thread. */
bool notify_send(const char *state);
/* A configuration is being read again: RELOADING with the time that systemd wants beside it. */
void notify_reloading(void);
/* How often WATCHDOG=1 is expected of this process; 0: never. Send it twice as often. */
time_ms notify_watchdog_ms(void);

#endif
