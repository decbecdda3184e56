package store_test

import "maps"

// rewriteRows are valid rows of the rewrite queue.
const rewriteRows = `
insert into criticizer.rewrite_requests values ('00000000-0000-0000-0000-000000000001', 'rewrite:x');
insert into criticizer.rewrite_batches (batch_id, routing_decision, language_pair, lane, requests, tokens, run_id)
values ('00000000-0000-0000-0000-000000000002', '{}', '{}', 'same_language', 1, 1, gen_random_uuid());
insert into criticizer.rewrite_runs (run_id, worker, max_jobs_per_run) values (gen_random_uuid(), 'rewrite_async', 25);
insert into rewrite.artifacts (id, body, ttl) values (repeat('a', 64), 'x', '1 hour');
` + oneRewriteJob

const oneRewriteJob = `
insert into criticizer.rewrite_jobs (job_id, rewrite_request_id, surface, rewrite_strength, language_pair, recipient_user_id,
                                     recipient_snapshot_id, recipient_preference_snapshot_id, routing_decision)
select gen_random_uuid(), r, 'other', 'light_touch', '{"from": "en", "to": "de"}', r, r, r, ` + decision + `
from (values ('00000000-0000-0000-0000-000000000001'::uuid)) as v (r)`

// decision is a valid decision, as a literal of SQL.
const decision = `'{"provider": "openai", "adapter_kind": "openai_chat", "model": "m", "prompt_version": "v1", "policy_version": "v1", "execution_mode": "async"}'::jsonb`

// claimed claims the job, so that later statuses can be reached.
const claimed = `update criticizer.rewrite_jobs set status = 'processing', claimed_at = now(), claimed_by = 'w';`

func init() {
	maps.Copy(violations, map[string][]string{
		"criticizer.rewrite_requests_text_present": {`update criticizer.rewrite_requests set text_ref = 'you never clean'`},

		"criticizer.rewrite_jobs_unit_unique":   {oneRewriteJob}, // (rewrite 4)
		"criticizer.rewrite_jobs_of_request":    {`update criticizer.rewrite_jobs set rewrite_request_id = job_id`},
		"criticizer.rewrite_jobs_of_batch":      {`update criticizer.rewrite_jobs set batch_id = job_id`},
		"criticizer.rewrite_jobs_task_known":    {`update criticizer.rewrite_jobs set task = 'review'`},
		"criticizer.rewrite_jobs_surface_known": {`update criticizer.rewrite_jobs set surface = 'mail'`},
		"criticizer.rewrite_jobs_strength_known": {
			`update criticizer.rewrite_jobs set rewrite_strength = 'total'`,
		},
		"criticizer.rewrite_jobs_languages_are_tags": {
			`update criticizer.rewrite_jobs set language_pair = '{"from": "en", "to": "you never clean"}'`,
			`update criticizer.rewrite_jobs set language_pair = '{"from": "en", "to": "de", "text": "x"}'`,
			`update criticizer.rewrite_jobs set language_pair = '{}'`,
			`update criticizer.rewrite_jobs set language_pair = '{"from": "en"}'`,
			`update criticizer.rewrite_jobs set language_pair = '{"from": true, "to": "en"}'`,
			`update criticizer.rewrite_jobs set language_pair = '{"from": ["en"], "to": "en"}'`,
			`update criticizer.rewrite_jobs set language_pair = '"en"'`,
		},
		"criticizer.rewrite_jobs_status_known":     {`alter table criticizer.rewrite_jobs disable trigger user; update criticizer.rewrite_jobs set status = 'running'`},
		"criticizer.rewrite_jobs_attempts_counted": {`update criticizer.rewrite_jobs set attempt_count = -1`, `update criticizer.rewrite_jobs set max_attempts = 0`},
		"criticizer.rewrite_jobs_processing_is_claimed": {
			`update criticizer.rewrite_jobs set status = 'processing', claimed_by = 'w'`,
			`update criticizer.rewrite_jobs set status = 'processing', claimed_at = now()`,
		},
		"criticizer.rewrite_jobs_submitted_has_batch":   {claimed + `update criticizer.rewrite_jobs set status = 'batch_submitted'`},
		"criticizer.rewrite_jobs_completed_has_result":  {claimed + `update criticizer.rewrite_jobs set status = 'completed'`},
		"criticizer.rewrite_jobs_failed_has_error":      {claimed + `update criticizer.rewrite_jobs set status = 'failed'`}, // (rewrite 8.2)
		"criticizer.rewrite_jobs_routing_holds_no_text": {`update criticizer.rewrite_jobs set routing_decision = ` + decision + ` || '{"text": "you never clean"}'`},
		"criticizer.rewrite_jobs_routing_has_mode": {
			`update criticizer.rewrite_jobs set routing_decision = '{}'`,
			`update criticizer.rewrite_jobs set routing_decision = routing_decision - 'execution_mode'`,
			`update criticizer.rewrite_jobs set routing_decision = routing_decision || '{"execution_mode": "later"}'`,
		},
		"criticizer.rewrite_jobs_routing_is_readable": {
			`update criticizer.rewrite_jobs set routing_decision = routing_decision - 'provider'`,
			`update criticizer.rewrite_jobs set routing_decision = routing_decision - 'adapter_kind'`,
			`update criticizer.rewrite_jobs set routing_decision = routing_decision - 'model'`,
			`update criticizer.rewrite_jobs set routing_decision = routing_decision - 'prompt_version'`,
			`update criticizer.rewrite_jobs set routing_decision = routing_decision - 'policy_version'`,
			`update criticizer.rewrite_jobs set routing_decision = routing_decision || '{"model": "you never clean"}'`,
			`update criticizer.rewrite_jobs set routing_decision = routing_decision || '{"model": {"a": 1}}'`,
			`update criticizer.rewrite_jobs set routing_decision = routing_decision || '{"cache_eligible": "yes"}'`,
			`update criticizer.rewrite_jobs set routing_decision = routing_decision || '{"max_retries": 1.5}'`,
			`update criticizer.rewrite_jobs set routing_decision = routing_decision || '{"max_retries": "2"}'`,
			`update criticizer.rewrite_jobs set routing_decision = routing_decision || '{"base_url": 1}'`,
		},
		"criticizer.rewrite_jobs_attempts_limited": {`update criticizer.rewrite_jobs set max_attempts = 51`},
		"criticizer.rewrite_jobs_times_are_finite": {
			`update criticizer.rewrite_jobs set not_before_at = '-infinity'`,
			`update criticizer.rewrite_jobs set not_before_at = '4713-01-01 BC'`,
			`update criticizer.rewrite_jobs set not_before_at = '20000-01-01'`,
			`update criticizer.rewrite_jobs set last_error_at = 'infinity'`,
		},

		// Changes that skip a status or leave a final one (rewrite 3).
		"criticizer.rewrite_transitions_legal": {
			`update criticizer.rewrite_jobs set status = 'completed', result_ref = 'rewrite:x'`,
			claimed + `update criticizer.rewrite_jobs set status = 'canceled'; update criticizer.rewrite_jobs set status = 'queued'`,
			`update criticizer.rewrite_jobs set rewrite_request_id = rewrite_request_id, status = 'failed', last_error = 'x', last_error_at = now()`,
		},

		"criticizer.rewrite_batches_state_known":      {`update criticizer.rewrite_batches set state = 'lost'`},
		"criticizer.rewrite_batches_lane_known":       {`update criticizer.rewrite_batches set lane = 'fast'`},
		"criticizer.rewrite_batches_hold_jobs":        {`update criticizer.rewrite_batches set requests = 0`},
		"criticizer.rewrite_batches_submitted_has_id": {`update criticizer.rewrite_batches set state = 'submitted'`},
		"criticizer.rewrite_batches_ended_iff_final":  {`update criticizer.rewrite_batches set state = 'abandoned'`, `update criticizer.rewrite_batches set ended_at = now()`},
		"criticizer.rewrite_batches_lease_has_end":    {`update criticizer.rewrite_batches set leased_until = now()`},

		"criticizer.rewrite_runs_worker_known":        {`update criticizer.rewrite_runs set worker = 'somebody'`},
		"criticizer.rewrite_runs_are_limited":         {`update criticizer.rewrite_runs set max_jobs_per_run = 0`}, // (rewrite 12)
		"criticizer.rewrite_runs_event_known":         {`update criticizer.rewrite_runs set finished_at = now(), event = 'skipped'`},
		"criticizer.rewrite_runs_skipped_did_nothing": {`update criticizer.rewrite_runs set event = 'rewrite_async skipped: no pending items'`},

		"rewrite.artifacts_body_present": {`update rewrite.artifacts set body = ''`},
		"rewrite.artifacts_id_is_hash":   {`update rewrite.artifacts set id = 'you never clean'`},
		"rewrite.artifacts_ttl_30_days":  {`update rewrite.artifacts set expires_at = stored_at + interval '721 hours'`, `update rewrite.artifacts set expires_at = stored_at`},
	})
}
