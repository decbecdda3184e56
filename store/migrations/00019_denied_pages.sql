-- +goose Up

-- A third reason to call somebody: a credential that is refused, or credit that is
-- used up, stops everyone, and nobody but a person can mend it.
alter table criticizer.pages drop constraint pages_reason_known;
alter table criticizer.pages add constraint pages_reason_known check (reason in ('escalated', 'bug', 'denied'));
