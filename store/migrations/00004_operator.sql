-- +goose Up

-- What an operator asked for, written before the reset is: who, and the evidence
-- of the remedy (criticizer-processing 8.5.3). A request without a run whose
-- letter is replaying was interrupted; the next replay takes it up.
create table criticizer.replay_requests (
    id             bigint generated always as identity primary key,
    dead_letter_id bigint      not null,
    who            text        not null,
    evidence       text        not null,
    full_restart   boolean     not null,
    requested_at   timestamptz not null default now(),
    new_run_id     text,        -- set once the reset is known to have happened
    withdrawn_at   timestamptz, -- set once it is known not to have happened
    constraint replay_requests_of_dead_letter foreign key (dead_letter_id) references criticizer.dead_letters (id),
    constraint replay_requests_say_who_why check (who <> '' and evidence <> ''),
    constraint replay_requests_end_once check (new_run_id is null or withdrawn_at is null),
    constraint replay_requests_run_present check (new_run_id <> '')
);
create index replay_requests_of_letter on criticizer.replay_requests (dead_letter_id);

-- Explained is what was asked for with evidence. A reason given to Temporal is
-- kept, but it is no evidence: nobody asked for it before the reset.
alter table criticizer.replays drop column explained;
alter table criticizer.replays add column request_id bigint;
alter table criticizer.replays add column explained boolean not null generated always as (request_id is not null) stored;
alter table criticizer.replays add constraint replays_of_request
    foreign key (request_id) references criticizer.replay_requests (id);

alter table criticizer.dead_letters add column resolved_by text not null default '';
alter table criticizer.dead_letters add column resolution text not null default '';

-- The outbox of pages: what an on-call person is to be told, written with the
-- dead letter so that neither is lost without the other.
create table criticizer.pages (
    id              bigint generated always as identity primary key,
    dead_letter_id  bigint      not null,
    reason          text        not null,
    attempts        integer     not null default 0,
    next_attempt_at timestamptz not null default now(),
    told            text[]      not null default '{}', -- the channels that accepted it
    created_at      timestamptz not null default now(),
    sent_at         timestamptz, -- set once every channel has accepted it
    constraint pages_letter_unique unique (dead_letter_id),
    constraint pages_of_dead_letter foreign key (dead_letter_id) references criticizer.dead_letters (id),
    constraint pages_reason_known check (reason in ('escalated', 'bug')),
    constraint pages_attempts_positive check (attempts >= 0)
);
create index pages_unsent on criticizer.pages (next_attempt_at) where sent_at is null;

grant select on criticizer.replay_requests to criticizer_bookkeeping, criticizer_operator;
grant insert, update (new_run_id, withdrawn_at) on criticizer.replay_requests to criticizer_operator;
grant update (request_id) on criticizer.replays to criticizer_operator;

grant select on criticizer.pages to criticizer_operator;
grant select, insert, update on criticizer.pages to criticizer_bookkeeping;
