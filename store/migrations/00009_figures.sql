-- +goose Up

-- What monitoring is told of the installation, the same whichever worker is
-- asked (docs/observability.md): counts and ages, in seconds, never whom or
-- what. A view reads with its owner's rights, so that who may see the figures
-- need not be allowed to see the rows.
create view criticizer.figures (name, labels, figure) as
    select 'criticizer_reviews', jsonb_build_object('state', state), count(*)::double precision
    from criticizer.jobs group by state
union all
    select 'criticizer_review_oldest_seconds', '{}'::jsonb, coalesce(extract(epoch from now() - min(created_at)), 0)
    from criticizer.jobs where state in ('in_progress', 'retryable_failed')
union all
    select 'criticizer_dead_letters', jsonb_build_object('state', state, 'stage', stage, 'class', error_class), count(*)
    from criticizer.dead_letters group by state, stage, error_class
union all
    select 'criticizer_dead_letters_escalated', '{}', count(*)
    from criticizer.dead_letters where escalated and state in ('open', 'replaying')
union all
    select 'criticizer_dead_letter_oldest_seconds', '{}', coalesce(extract(epoch from now() - min(recorded_at)), 0)
    from criticizer.dead_letters where state in ('open', 'replaying')
union all
    select 'criticizer_replays_unexplained', '{}', count(*)
    from criticizer.replays where not explained
union all
    select 'criticizer_pages_unsent', '{}', count(*)
    from criticizer.pages p join criticizer.dead_letters l on l.id = p.dead_letter_id
    where p.sent_at is null and l.state in ('open', 'replaying')
union all
    select 'criticizer_deliveries', jsonb_build_object('status', status), count(*)
    from criticizer.deliveries group by status
union all
    select 'criticizer_outbox_depth', '{}', count(*)
    from criticizer.deliveries where status in ('pending', 'held')
union all
    select 'criticizer_outbox_oldest_seconds', '{}', coalesce(extract(epoch from now() - min(created_at)), 0)
    from criticizer.deliveries where status in ('pending', 'held')
union all
    select 'criticizer_deliveries_ambiguous', '{}', count(*)
    from criticizer.deliveries where begun
union all
    select 'criticizer_deliveries_confirmed', '{}', count(*)
    from criticizer.deliveries where confirmed_at is not null
union all
    select 'criticizer_deliveries_unproven', '{}', count(*)
    from criticizer.deliveries where unproven > 0
union all
    select 'criticizer_retention_lag_seconds', '{"namespace": "raw"}', greatest(0, extract(epoch from now() - min(expires_at)))
    from raw.artifacts
union all
    select 'criticizer_retention_lag_seconds', '{"namespace": "redacted"}', greatest(0, extract(epoch from now() - min(expires_at)))
    from redacted.artifacts
union all
    select 'criticizer_retention_lag_seconds', '{"namespace": "report"}', greatest(0, extract(epoch from now() - min(expires_at)))
    from report.artifacts;

grant select on criticizer.figures to criticizer_bookkeeping, criticizer_operator;
