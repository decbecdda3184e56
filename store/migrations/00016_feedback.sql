-- What was reported, without its content, and what readers said of it, so that
-- what is wrong is not reported again and rules are judged by their findings.

-- +goose Up
create table criticizer.findings (
    token              text primary key,
    changelist_id      bigint      not null,
    review_version     integer     not null,
    fingerprint        text        not null,
    place_fingerprints text[]      not null default '{}', -- of its other places
    path               text        not null,
    rule               text        not null default '', -- the pack for the file, empty if there was none
    category           text        not null,
    severity           text        not null,
    reported_at        timestamptz not null default now(),
    opinion            text,
    note               text        not null default '',
    said_by            text,
    said_at            timestamptz,
    constraint findings_once_per_version unique (changelist_id, review_version, fingerprint),
    constraint findings_token_is_ours check (token ~ '^[a-z2-7]{13}$'),
    constraint findings_opinion_known check (opinion in ('useful', 'wrong')),
    constraint findings_opinion_says_who_when check (
        (opinion is not null) = (said_at is not null) and (opinion is not null) = (said_by is not null))
);
create index findings_reported_at on criticizer.findings (reported_at);

-- What is not reported again. A fingerprint holds the path, so that the same code
-- elsewhere is another matter.
create table criticizer.wrong_findings (
    fingerprint text primary key,
    token       text        not null,
    marked_at   timestamptz not null default now(),
    constraint wrong_findings_of_finding foreign key (token) references criticizer.findings (token)
);

-- Who asks the model reports findings and learns which not to; what people said,
-- and who, is not its business.
grant insert (token, changelist_id, review_version, fingerprint, place_fingerprints, path, rule, category, severity),
      select (token, changelist_id, review_version, fingerprint)
    on criticizer.findings to criticizer_llm;
grant select (fingerprint) on criticizer.wrong_findings to criticizer_llm;

grant select, update (opinion, note, said_by, said_at) on criticizer.findings to criticizer_operator;
grant select, insert, delete on criticizer.wrong_findings to criticizer_operator;
