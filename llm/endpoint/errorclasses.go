package endpoint

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
)

// A meaning is what an endpoint's error means.
type meaning struct {
	class failure.Class
	text  string // completes "model endpoint answered 401: ..."
	code  string // shown beside the status, "" for none
}

// statuses are the meanings of HTTP statuses (processing 8.1).
var statuses = map[int]meaning{
	400: {failure.EndpointRefused, "the request is refused; check that the endpoint supports the answer format and every parameter", ""},
	401: {failure.AuthDenied, "the API key is refused", ""},
	402: {failure.QuotaExhausted, "the account has no credit", ""},
	403: {failure.PermissionDenied, "the account has no access to this model", ""},
	404: {failure.NotFound, "no such path or model; check base URL and model", ""},
	405: {failure.ConfigInvalid, "no chat completions at this path; check the base URL", ""},
	408: {failure.NetworkTimeout, "it timed out waiting for the request", ""},
	409: {failure.WriteConflict, "conflict with another request", ""},
	410: {failure.NotFound, "the model is gone", ""},
	413: {failure.TooLarge, "the request is too large; lower the prompt limit", ""},
	424: {failure.UpstreamInternal, "a part of it failed", ""},
	429: {failure.RateLimited, "too many requests or tokens", ""},
	499: {failure.UpstreamUnavailable, "it canceled the request", ""},
	500: {failure.UpstreamInternal, "internal error", ""},
	502: {failure.UpstreamUnavailable, "its gateway cannot reach it", ""},
	503: {failure.UpstreamUnavailable, "it is unavailable or overloaded", ""},
	504: {failure.UpstreamUnavailable, "its gateway timed out", ""},
	529: {failure.UpstreamUnavailable, "it is overloaded", ""},
}

var (
	noKey       = meaning{failure.AuthDenied, "the API key is refused", "invalid_api_key"}
	noAccount   = meaning{failure.AuthDenied, "the account is disabled", "account_disabled"}
	noCredit    = meaning{failure.QuotaExhausted, "the account has no credit", "insufficient_quota"}
	tooLong     = meaning{failure.TooLarge, "the prompt and answer are longer than the model supports; lower the limits of prompt and answer", "context_length_exceeded"}
	tooMany     = meaning{failure.TooLarge, "one request has more tokens than the account may use in a minute; lower llm.max_prompt_tokens and llm.max_answer_tokens", "request_too_large"}
	answerLimit = meaning{failure.ConfigInvalid, "the answer limit is larger than the model supports; lower llm.max_answer_tokens", "max_tokens_too_large"}
	filtered    = meaning{failure.ContentPolicy, "the content is refused", "content_filter"}
	badAnswer   = meaning{failure.SchemaInvalid, "the model gave no valid JSON", "json_validate_failed"}
	rateLimited = meaning{failure.RateLimited, "too many requests or tokens", "rate_limit_exceeded"}
	enqueued    = meaning{failure.RateLimited, "the account has too much enqueued in batches", "enqueued_limit"}
	noModel     = meaning{failure.ConfigInvalid, "no such model; check the model", "model_not_found"}
	noParameter = meaning{failure.ConfigInvalid, "the model does not support a parameter; check temperature, reasoning effort and answer format", "unsupported_parameter"}
	overloaded  = meaning{failure.UpstreamUnavailable, "it is unavailable or overloaded", "overloaded_error"}
)

// A rule decides the meaning of errors. It applies if the status is one of its own, and a code
// or the words match.
type rule struct {
	meaning
	on      func(status int) bool
	codes   *regexp.Regexp
	words   *regexp.Regexp
	onBreak *regexp.Regexp // if set, instead of words if the server failed or an answer began: most such errors are transient
	unless  *regexp.Regexp // of the words
}

// any status, one that a request's content may cause, and one that its form may cause. 0 is an error in
// an answer that began.
func anyStatus(int) bool   { return true }
func ofRequest(s int) bool { return s < 500 && s != 401 && s != 429 || s == 500 }
func ofForm(s int) bool    { return s == 0 || s == 400 || s == 413 || s == 416 || s == 422 }
func whole(codes string) *regexp.Regexp {
	return regexp.MustCompile(`^(?:` + codes + `)$`)
}

// near matches two things close to each other, in either order.
func near(one, other string) *regexp.Regexp {
	return regexp.MustCompile(fmt.Sprintf(`(?:%[1]s).{0,60}?(?:%[2]s)|(?:%[2]s).{0,60}?(?:%[1]s)`, one, other))
}

// Words of the rules. A limit of the answer is a field's name with what is wrong with its value.
const (
	limitNames  = `\bmax[_ ]?(?:completion|new|output)?[_ ]?tokens\b|\bmaxoutputtokens\b|\bmaximum tokens (?:you requested|value)|\bmaximum (?:number of )?(?:output|completion) tokens`
	outOfBounds = `too (?:large|big|high|many)|at most|less than|smaller than|lower than|not exceed|exceed|<=|<|>|\brange\b|between|above (?:the )?maximum|maximum (?:value|allowed|number)|\bup to\b|greater than|larger than|cannot be (?:greater|larger|more)|limited|model is \d`
	prompts     = `\binputs?\b|\bprompt|\bcontext|\btokens?\b|\blength\b|\bmessages?\b|\brequest\b|\bsequence\b|\bcontent\b`
	lengths     = `\bprompt|\btokens?\b|\blength\b`
	contexts    = `\binput is too long|\bn_ctx\b|\bcontext[ _-]?(?:window|length|size|limit)|上下文.{0,12}(?:过长|超|限)|(?:超过|超出).{0,8}(?:上下文|长度)|(?:输入|内容).{0,4}过长`
	tooMuch     = `exceed|too (?:long|large|many|big)|longer than|larger than|greater than|more than the|over the|\bup to\b|\blimit(?:ed)? (?:of|is|to|exceeded)|\bmaximum\b|\brange of\b|must have (?:less|fewer)|must be (?:<=|less|at most|smaller)|more than (?:the )?max|reduce (?:the|your) (?:length|input|prompt|size)|overflow|not enough|beyond`
	soon        = `per[ _-]?(?:minute|min|second|hour)|perminute|\brpm\b|\btpm\b|try again|retry (?:in|after)|please wait|too (?:many|frequent)|\brate[ _-]?limit`
	//nolint:gosec // words of errors, not a credential
	credit = `\bcredits?\b|\bfree (?:tier|allocation)\b|\bbalance\b|\bfunds\b|\bbilling\b|spending (?:limit|cap)|\bpayment\b|\brecharge\b|(?:max|key|your|user|team|total) budget|budget (?:limit|has)|\bprepay|extra usage|usage limit|key limit|余额|欠费|额度`
	spent  = `\blow\b|insufficient|exceed|exhausted|depleted|required|requires more|reached|overdue|inactive|not active|suspended|used up|\bempty\b|\bno\b|not enough|do(?:es)?n'?t have|\bnegative\b|r[ua]n out|out of|不足|欠费`
)

var spentCodes = whole(`insufficient_(?:quota|balance|credits?|funds|user_quota)|billing_(?:hard_limit_reached|not_active|error)|exceeded_current_quota_error|budget_exceeded|payment_required|arrearage|credits?_(?:exhausted|required)|pre_consume_token_quota_failed|1113|accountoverdueerror|setlimitexceeded`)

// rules are in the order in which they are asked.
var rules = []rule{
	{meaning: enqueued, on: exceptServer, words: near(`\benqueued\b`, `\blimit|\bquota\b|exceed|too (?:many|much)|maximum`)},
	{meaning: rateLimited, on: exceptServer, words: regexp.MustCompile(`usage limit.{0,80}(?:try again in|retry in|\bresets?\b)`)},
	{meaning: badAnswer, on: ofRequest, codes: whole(`json_validate_failed|output_parse_failed|json_generation_failed|invalid_json_output|structured_output_failed|tool_use_failed`),
		words: regexp.MustCompile(`failed to (?:generate|validate|produce) (?:valid )?json|generated json does not|model did not (?:output|generate|return|produce) (?:valid |any )?json|output (?:could not be parsed|is not valid json)`)},
	{meaning: noCredit, on: anyStatus, codes: spentCodes, words: regexp.MustCompile(`exceeded_current_quota|insufficient[_ ](?:user_)?(?:quota|balance)|suspended due to`)},
	{meaning: noAccount, on: func(s int) bool { return s < 500 }, codes: whole(`account_deactivated|organization_(?:restricted|disabled)|account_(?:disabled|suspended)`),
		words: regexp.MustCompile(`(?:account|organization|access|team|project)[^.]{0,30} (?:deactivated|disabled|restricted|terminated|banned|blocked)|deactivated account`)},
	{meaning: filtered, on: func(s int) bool { return s < 500 && s != 401 && s != 402 || s == 500 },
		codes: whole(`content_filter(?:ed)?|content_policy(?:_violation)?|responsibleaipolicyviolation|data_?inspection_?failed|data_inspection|content_moderation|moderation_blocked|moderation|prohibited_content|sensitive_content|sensitive_words_detected|inputtextsensitivecontentdetected.*|outputtextsensitivecontentdetected.*|cyber_policy_violation|policy_violation|safety|1301`),
		words: regexp.MustCompile(`content[ _](?:management )?(?:policy|filter|polic)|safety (?:system|filter|polic|setting|check)|\bmoderation\b|inappropriate content|considered high risk|content exists risk|flagged (?:for|as|by)|was flagged|(?:sensitive|harmful|unsafe|prohibited|disallowed) (?:content|words?|terms?|information|material)|violat\w+ .{0,40}?(?:polic|guideline)|usage guidelines|guardrail (?:intervened|blocked)|blocked (?:by|due to) (?:the |our )?(?:guardrail|safety|content|policy|moderation)|invalid content that|datainspectionfailed|敏感内容|不安全|敏感词|违规`)},
	{meaning: noCredit, on: func(s int) bool { return s != 429 && s < 500 },
		words: near(credit+`|\bquota\b`, spent)},
	{meaning: noCredit, on: anyStatus,
		words: near(credit, spent), unless: regexp.MustCompile(soon)},
	{meaning: noKey, on: anyStatus, codes: whole(`invalid_api_key|api_key_invalid|invalid_authentication(?:_error)?|incorrect_api_key(?:_provided)?|authentication_error|auth_error|unauthenticated|unauthorized|invalidapikey|invalid_token|invalid_key|expired_api_key|api_key_expired|token_expired|access_token_expired`),
		words: near(`api[ _-]?keys?\b|(?:access|auth|authentication|bearer|api)[ _-]?tokens?\b|authentication method|\bcredentials?\b|令牌`,
			`invalid|incorrect|not valid|expired|revoked|malformed|missing|disabled|deactivated|deleted|wrong|rejected|denied|refused|\bno\b|\bbad\b|unauthorized|not (?:found|provided|passed|set|authorized|recognized|active|exist)|must provide|didn'?t provide|you need to provide|could not resolve|leaked|无效|过期`)},
	{meaning: noKey, on: func(s int) bool { return s < 500 && s != 404 && s != 429 },
		words: regexp.MustCompile(`invalid (?:or expired )?token(?:$|[.,:;!])|\b(?:not |un)authenticated\b|` +
			near(`\bauthentication\b|authenticationerror|\bauthorization\b`, `fail|invalid|missing|required|error|denied|\bno\b|header|expired|bad key`).String())},
	{meaning: answerLimit, on: func(s int) bool { return ofForm(s) || s == 500 }, codes: whole(`max_tokens_too_large|invalid_max_tokens`),
		words: near(limitNames, outOfBounds), unless: regexp.MustCompile(`(?:\+|\band|plus) ?['"` + "`" + `]?max_|not supported|unsupported parameter|unrecognized|\binputs?['"` + "`" + `]? tokens? \+|tokens per (?:min|day)|exceeds? (?:the )?context|max_tokens window|prompt is too long|plus (?:the )?(?:prompt|input)`)},
	{meaning: tooMany, on: exceptServer, words: regexp.MustCompile(`request (?:is |was )?too (?:large|big|long)[^.]{0,200}(?:tokens? per|tpm|tpd|rate limit)|(?:tokens per (?:min(?:ute)?|day)|tpm)[^.]{0,80}must be reduced`)},
	{meaning: rateLimited, on: func(s int) bool { return s == 429 || s == 0 || s == 400 || s == 403 || s == 500 },
		codes: whole(`rate_limit(?:_exceeded|_error|ed)?|rate_limit_reached_error|too_many_requests|resource_exhausted|throttling.*|throttlingexception|requests|1302|1303|1305`),
		words: regexp.MustCompile(`rate[ _-]?limit|requests? limit (?:reached|exceeded)|too many requests|\bthrottl|requests? per (?:minute|day|second)|tokens per (?:min|day)|too many tokens,? please wait|too frequent`)},
	{meaning: tooLong, on: func(s int) bool { return ofRequest(s) && s != 402 && s != 404 },
		codes:   whole(`context_length_exceeded|exceed_context_size_error|string_above_max_length|model_max_prompt_tokens_exceeded|prompt_too_long|request_too_large|context_window_exceeded(?:_error)?|context_exceeded|tokens_limit_reached|max_context_length_exceeded|input_too_long|contextwindowexceedederror|token_limit_exceeded|1261`),
		words:   regexp.MustCompile(near(prompts, tooMuch).String() + `|` + contexts),
		onBreak: regexp.MustCompile(near(lengths, tooMuch).String() + `|` + contexts),
		unless:  regexp.MustCompile(`\bdeadline|\btime limit|\btemperature\b|\btop_p\b|response[_ ]format|json[_ ]schema|\b(?:too many|number of|concurrent|maximum) (?:requests|images|tools|connections)|timed? ?out|rate[ _-]?limit|peak load|\binput should be\b`)},
	{meaning: noParameter, on: func(s int) bool { return ofForm(s) && s != 413 }, codes: whole(`unsupported_parameter|unsupported_value|invalid_json_schema|unknown_parameter|extra_forbidden|unsupported_response_format`)},
	{meaning: overloaded, on: func(s int) bool { return s != 429 && s != 404 && s != 401 && s != 402 },
		codes:  whole(`overloaded(?:_error)?|server_overloaded|engine_overloaded(?:_error)?|server_busy|service_unavailable|unavailable|model_overloaded|capacity_exceeded|provider_unavailable`),
		words:  regexp.MustCompile(`overloaded|server (?:is )?(?:currently )?busy|\bbusy\b.{0,30}(?:later|retry)|(?:still |currently |is )loading|loading model|no slot available|temporarily (?:unavailable|down)|out of capacity|at capacity|capacity (?:constraints|exceeded)|service unavailable|upstream (?:connect|timeout|idle timeout)|please (?:try again|retry) later|warming up|degraded function|failed to load model|model has crashed|model (?:is )?unloaded|繁忙`),
		unless: regexp.MustCompile(`not found|does ?n[o']t exist`)},
	{meaning: noModel, on: func(s int) bool { return s != 401 && s != 402 && s != 429 },
		codes: whole(`model_not_found|model_decommissioned|model_deprecated|model_not_available|model_not_supported|model_unavailable|model_retired|deploymentnotfound|operationnotsupported|unknown_model|unavailable_model|invalid_model|invalid_model_id|modelnotfound|model_not_exist|modelnotopen|invalidendpointormodel\.notfound|resource_not_found_error|1211`),
		words: near(`\bmodels?\b|\bdeployment\b|\bendpoints found\b|模型`,
			`\bdenied\b|not (?:a )?(?:valid|found|exist|available|supported|deployed|served|accessible|open)|does ?n[o']t exist|no longer|decommissioned|deprecated|retired|unknown|unsupported|invalid model|no such|no (?:allowed |available )?(?:endpoints|channel|provider)|unable to access|non-serverless|not serverless|no access|access to (?:the|this|that) model|inference profile|no models? loaded|models? loaded|could not find|cannot find|not have access|(?:identifier|name|id) is invalid|only supported in|sunset|end of life|shut ?down|try pulling|不存在|下线`),
		onBreak: near(`\bmodels?\b|\bdeployment\b|模型`, `does ?n[o']t exist|no available channel|不存在`),
		unless:  regexp.MustCompile(`parameter|response[_ ]format|json[_ ]schema|temperature|\btools?\b|\bstream\b|reasoning|max_tokens|\blogprobs\b|thinking|system (?:message|role|prompt)|timed? ?out`)},
}

// exceptServer is a status that is not of a server's own failure.
func exceptServer(s int) bool { return s < 500 }

// limitOf matches the limit and the requested tokens in an error about a rate.
var limitOf = regexp.MustCompile(`limit:? ?(\d+)\D.{0,60}?requested:? ?(\d+)`)

// meaning returns what s means: what the first rule says that applies, else what the status
// says.
func (s said) meaning() meaning {
	text := strings.ReplaceAll(s.text, ",", "")
	if m := limitOf.FindStringSubmatch(text); m != nil && exceptServer(s.status) {
		limit, _ := strconv.Atoi(m[1])
		if requested, _ := strconv.Atoi(m[2]); requested > limit { // no wait can help
			return tooMany
		}
	}
	for _, r := range rules {
		if !r.on(s.status) {
			continue
		}
		if r.codes != nil && slices.ContainsFunc(s.codes, r.codes.MatchString) {
			return r.meaning
		}
		words := r.words
		if r.onBreak != nil && (s.status == 0 || s.status >= http.StatusInternalServerError) {
			words = r.onBreak
		}
		if words != nil && words.MatchString(text) && (r.unless == nil || !r.unless.MatchString(text)) {
			return r.meaning
		}
	}
	if s.status >= 400 && s.status < 500 && s.status != http.StatusTooManyRequests {
		switch {
		case slices.Contains(s.params, "model"):
			return noModel
		case s.parameter() != "":
			return noParameter
		}
	}
	m, ok := statuses[s.status]
	switch {
	case ok:
		return m
	case s.status == 0:
		return statuses[http.StatusInternalServerError]
	case s.status >= 520 && s.status < 530: // from proxies: the origin is unreachable
		return statuses[http.StatusServiceUnavailable]
	case s.status >= 500:
		return statuses[http.StatusInternalServerError]
	}
	return statuses[http.StatusBadRequest]
}
