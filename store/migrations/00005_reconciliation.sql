-- +goose Up

-- What reconciliation knows of an outbox row (review-notification 8.2, 8.3).
-- A row that was confirmed once is never held to be unsent later: evidence is
-- not kept for ever, and its absence then says nothing.
alter table criticizer.deliveries add column checked_at timestamptz;   -- the provider was last asked
alter table criticizer.deliveries add column confirmed_at timestamptz; -- the provider first had evidence of a sent row
alter table criticizer.deliveries add column unproven integer not null default 0; -- how often sent, and the provider had none
alter table criticizer.deliveries add constraint deliveries_unproven_not_negative check (unproven >= 0);
create index deliveries_of_status on criticizer.deliveries (status, checked_at);

-- The report of a review that succeeded: what a requeued mail is made of, and
-- what the next version is compared with.
alter table criticizer.jobs add column report text;
alter table criticizer.jobs add constraint jobs_report_present check (report <> '');

-- The stage that mails learns which reviews are over, and nothing else of them.
grant select (changelist_id, review_version, state, report, created_at, finished_at) on criticizer.jobs to criticizer_notify;

-- An operator readdresses a delivery by a row of its own; the old one stays.
grant insert (changelist_id, review_version, recipient) on criticizer.deliveries to criticizer_operator;
