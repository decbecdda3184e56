-- name: ReserveTokensOfDay :one
-- Returns no row if the day has fewer tokens left.
insert into criticizer.token_days (day, tokens)
select (now() at time zone 'utc')::date, @tokens::bigint
where @tokens::bigint <= @day_limit::bigint
on conflict (day) do update set tokens = token_days.tokens + @tokens::bigint
where token_days.tokens + @tokens::bigint <= @day_limit::bigint
returning day;

-- name: SettleTokensOfDay :exec
update criticizer.token_days set tokens = greatest(0, tokens + @change::bigint) where day = @day;

-- name: ReserveTokensOfReview :exec
insert into criticizer.review_records (changelist_id, review_version, tokens)
values (@changelist_id, @review_version, @tokens)
on conflict (changelist_id, review_version) do update
set tokens = review_records.tokens + excluded.tokens;

-- name: SettleTokensOfReview :exec
update criticizer.review_records
set tokens            = greatest(0, tokens + @change::bigint),
    calls             = calls + @calls,
    prompt_tokens     = prompt_tokens + @prompt_tokens,
    completion_tokens = completion_tokens + @completion_tokens,
    cached_tokens     = cached_tokens + @cached_tokens,
    estimated         = estimated or @estimated
where changelist_id = @changelist_id and review_version = @review_version;

-- name: UsageOfReview :one
select tokens, calls, prompt_tokens, completion_tokens, cached_tokens, estimated
from criticizer.review_records
where changelist_id = @changelist_id and review_version = @review_version;

-- name: RecordReview :exec
insert into criticizer.review_records (changelist_id, review_version, record)
values (@changelist_id, @review_version, @record)
on conflict (changelist_id, review_version) do update
set record = excluded.record;

-- name: RecordOutcome :exec
insert into criticizer.outcomes (changelist_id, review_version, report, outcome, findings, stand_in, coverage, tally)
values (@changelist_id, @review_version, @report, @outcome, @findings, @stand_in, @coverage, @tally)
on conflict do nothing;

-- name: RecordGaps :exec
insert into criticizer.gaps (changelist_id, review_version, report, position, path, lines, why, class, context)
select @changelist_id, @review_version, @report, position, gap ->> 'path', gap ->> 'lines', gap ->> 'why',
       coalesce(gap ->> 'error_class', ''), coalesce(gap ->> 'context', '')
from jsonb_array_elements(@gaps::jsonb) with ordinality as each (gap, position)
on conflict do nothing;

-- name: GapsOfChangelist :many
-- A submit may have adopted the report of its shelf's review.
select j.review_version, g.path, g.lines, g.why, g.class, g.context
from criticizer.jobs j
join criticizer.outcomes o using (changelist_id, review_version, report)
join criticizer.gaps g on g.changelist_id = coalesce(o.of_changelist, o.changelist_id)
    and g.review_version = coalesce(o.of_version, o.review_version) and g.report = o.report
where j.changelist_id = @changelist_id
order by j.review_version, g.position;

-- name: ReviewRecords :many
select review_version, record from criticizer.review_records
where changelist_id = @changelist_id and record is not null
order by review_version;
