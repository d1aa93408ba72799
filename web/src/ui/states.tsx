// What a view shows when it has no figures to show: each state says what it is and what to do.

import type { ComponentChildren } from "preact";
import type { Answer, Failure } from "../data";

export const Loading = ({ what }: { what: string }) => (
    <div class="state loading" role="status">
        <span class="pulse" aria-hidden="true" />
        <p>Loading {what} …</p>
    </div>
);

export const Failed = ({ failure, what }: { failure: Failure; what: string }) => (
    <div class="state failed" role="alert">
        <p><b>{what} could not be shown:</b> {failure.message}</p>
        {failure.hint && <p class="quiet">{failure.hint}</p>}
        <button type="button" onClick={() => location.reload()}>Try again</button>
    </div>
);

export const Empty = ({ children }: { children: ComponentChildren }) => <div class="state empty">{children}</div>;

/** Waits, fails, or shows; what is of the question before stays, dimmed. */
export function Await<T>({ answer, what, children }: {
    answer: Answer<T>; what: string; children: (value: NonNullable<T>) => ComponentChildren;
}) {
    if (answer.failure) return <Failed failure={answer.failure} what={what} />;
    if (answer.value === undefined) return <Loading what={what} />;
    if (answer.value === null) return <Empty><p>Nothing is known about {what} here.</p></Empty>;
    return (
        <div class={answer.loading ? "stale" : undefined} aria-busy={answer.loading}>
            {children(answer.value as NonNullable<T>)}
        </div>
    );
}
