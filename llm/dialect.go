package llm

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
)

// A Dialect describes how the servers of one family differ in their use of the API.
// testdata/recorded.json has answers of each family, with their source.
type Dialect struct {
	// Name is the value of the setting dialect.
	Name string
	// Hosts are ends of the host names of the family's endpoints, and Owners what its
	// list of models has in owned_by.
	Hosts, Owners []string
	// LimitField is the field that limits the answer.
	LimitField string
	// Format is the answer format that the server enforces; it may accept others and
	// ignore them.
	Format AnswerFormat
	// KeyHeader is the header of the key; "" is a bearer token.
	KeyHeader string
	// ContextPath, with ContextField, is where a server reports how many tokens it
	// reads, "" if nowhere. A path without a slash is relative to the base URL.
	ContextPath, ContextField string
	// ContextSetting is the server's setting for it, for people.
	ContextSetting string
	// Aliases is set if the endpoint answers as another model than the one asked for: a
	// dated version, or the model of a deployment.
	Aliases bool
	// TooLong, Busy and Refused are parts of its error messages, in lower case.
	TooLong, Busy, Refused []string
}

const (
	limitCompletion = "max_completion_tokens"
	limitOlder      = "max_tokens"
)

// dialects are all families; the last entry is the dialect of unknown servers.
var dialects = []Dialect{
	{
		Name: "openai", Aliases: true, Hosts: []string{"api.openai.com"}, Owners: []string{"openai", "system", "openai-internal"}, LimitField: limitCompletion, Format: FormatSchema,
		TooLong: []string{"maximum context length", "exceeds the context window"}, Busy: []string{"currently overloaded"},
		Refused: []string{"result of our safety system", "invalid prompt: your prompt was flagged"},
	},
	{
		Name: "azure", Aliases: true, Hosts: []string{".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"}, LimitField: limitCompletion, Format: FormatSchema,
		KeyHeader: "api-key", Refused: []string{"content management policy"},
	},
	{
		Name: "anthropic", Aliases: true, Hosts: []string{"api.anthropic.com"}, Owners: []string{"anthropic"}, LimitField: limitCompletion, Format: FormatText,
		TooLong: []string{"prompt is too long", "exceed context limit"}, Busy: []string{"overloaded"},
	},
	{
		Name: "gemini", Aliases: true, Hosts: []string{"generativelanguage.googleapis.com", "aiplatform.googleapis.com"}, Owners: []string{"google"}, LimitField: limitOlder, Format: FormatSchema,
		TooLong: []string{"exceeds the maximum number of tokens"}, Busy: []string{"model is overloaded"},
	},
	{
		Name: "openrouter", Aliases: true, Hosts: []string{"openrouter.ai"}, LimitField: limitOlder, Format: FormatSchema,
		TooLong: []string{"maximum context length"}, Refused: []string{"requires moderation"},
	},
	{
		Name: "vllm", Owners: []string{"vllm"}, LimitField: limitCompletion, Format: FormatSchema, ContextPath: "models", ContextField: "max_model_len",
		ContextSetting: "--max-model-len", TooLong: []string{"maximum context length", "longer than the maximum model length"},
	},
	{
		Name: "llamacpp", Owners: []string{"llamacpp"}, LimitField: limitOlder, Format: FormatSchema, ContextPath: "/props", ContextField: "n_ctx",
		ContextSetting: "--ctx-size", TooLong: []string{"exceeds the available context size", "context size has been exceeded"}, Busy: []string{"loading model", "no slot available"},
	},
	{
		Name: "ollama", Owners: []string{"library"}, LimitField: limitOlder, Format: FormatSchema, ContextPath: "/api/ps", ContextField: "context_length",
		ContextSetting: "OLLAMA_CONTEXT_LENGTH", TooLong: []string{"exceeds the available context size", "input length exceeds"}, Busy: []string{"server busy"},
	},
	{
		Name: "lmstudio", Owners: []string{"organization_owner"}, LimitField: limitOlder, Format: FormatSchema, ContextPath: "/api/v0/models", ContextField: "loaded_context_length",
		ContextSetting: "Context Length", TooLong: []string{"context the overflows", "greater than the context length"},
	},
	{
		Name: "generic", LimitField: limitCompletion, Format: FormatSchema, ContextSetting: "its context length",
		TooLong: []string{"context length", "context size", "context window", "too many tokens"},
	},
}

// generic is the dialect of an unknown server.
func generic() Dialect { return dialects[len(dialects)-1] }

// dialectOf returns the dialect that the configuration names, or else the dialect of the
// host.
func dialectOf(name, baseURL string) Dialect {
	host := ""
	if u, err := url.Parse(baseURL); err == nil {
		host = u.Hostname()
	}
	for _, d := range dialects {
		if d.Name == name || name == "auto" && slices.ContainsFunc(d.Hosts, func(end string) bool { return strings.HasSuffix(host, end) }) {
			return d
		}
	}
	return generic()
}

// modelVersion matches what an endpoint may append to the name of a model: nothing, or a
// version or date.
var modelVersion = regexp.MustCompile(`^(?:[-@:]v?[0-9][0-9.-]*)?$`)

// checkModel returns an error if a server answered as another model than the one asked
// for. Its text is ours: the name in the answer is untrusted.
func (d Dialect) checkModel(asked, answered string) error {
	short := func(name string) string {
		name = name[strings.LastIndexAny(name, "/\\")+1:]
		return strings.TrimSuffix(strings.ToLower(name), ":latest")
	}
	a, b := short(asked), short(answered)
	version, extended := strings.CutPrefix(b, a)
	if d.Aliases || b == "" || extended && modelVersion.MatchString(version) {
		return nil
	}
	return failure.Errorf(failure.ConfigInvalid, "model endpoint answered as another model than %s: set llm.model to a name that its list of models has", asked)
}

// A modelDialect is what is known about requests to one model: its dialect, as corrected by
// the endpoint's answers, and how it counts tokens.
type modelDialect struct {
	Dialect
	without  []string // fields that the endpoint refuses
	inPrompt bool     // it accepts the format and ignores it: the schema is in the prompt
	context  int      // tokens that it reads in one call, as an error said; 0 if none did
}

// An adjustment is a change of requests after an error that names a field.
type adjustment struct {
	words, unless []string // of the error, in lower case
	change        func(*modelDialect) bool
}

// adjustments are in the order in which they are tried. An error about a limit that is
// too large does not mean that the field is unknown.
var adjustments = []adjustment{
	{[]string{limitCompletion}, []string{"too large", "at most", "maximum", "exceed"}, func(w *modelDialect) bool { return w.limitBy(limitOlder) }},
	{[]string{limitOlder}, []string{"too large", "at most", "maximum", "exceed", "or equal"}, func(w *modelDialect) bool { return w.limitBy(limitCompletion) }},
	{[]string{"response_format", "response format", "json_schema", "json_object", "json schema", "grammar", "structured output", "text.format"}, nil, func(w *modelDialect) bool {
		at := slices.Index(answerFormats, w.Format)
		if at+1 < len(answerFormats) {
			w.Format = answerFormats[at+1]
		}
		if w.Format == FormatText {
			return w.drop("response_format")
		}
		return at+1 < len(answerFormats)
	}},
	{[]string{"temperature"}, nil, func(w *modelDialect) bool { return w.drop("temperature") }},
	{[]string{"top_p"}, nil, func(w *modelDialect) bool { return w.drop("top_p") }},
	{[]string{"seed"}, nil, func(w *modelDialect) bool { return w.drop("seed") }},
	{[]string{"reasoning"}, nil, func(w *modelDialect) bool { return w.drop("reasoning_effort") }},
	{[]string{"stream_options", "include_usage"}, nil, func(w *modelDialect) bool { return w.drop("stream_options") }},
	{[]string{"stream"}, nil, func(w *modelDialect) bool {
		w.drop("stream_options")
		return w.drop("stream")
	}},
}

func (w *modelDialect) limitBy(field string) bool {
	if w.LimitField == field || slices.Contains(w.without, field) {
		return false
	}
	w.without = append(slices.Clip(w.without), w.LimitField)
	w.LimitField = field
	return true
}

func otherLimit(field string) string {
	if field == limitOlder {
		return limitCompletion
	}
	return limitOlder
}

func (w *modelDialect) drop(field string) bool {
	if slices.Contains(w.without, field) {
		return false
	}
	w.without = append(slices.Clip(w.without), field)
	return true
}

// adjust changes w as the endpoint's error asks for, and reports whether it names
// something that can be changed.
func (w *modelDialect) adjust(e apiError) bool {
	if !slices.Contains([]int{http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError, http.StatusNotImplemented}, e.status) {
		return false
	}
	text := strings.ToLower(e.Message + " " + e.Param)
	has := func(words []string) bool {
		return slices.ContainsFunc(words, func(s string) bool { return strings.Contains(text, s) })
	}
	for _, r := range adjustments {
		if has(r.words) && !has(r.unless) {
			return r.change(w)
		}
	}
	return false
}

// modelDialect returns what is known about requests to model.
func (r *Reviewer) modelDialect(model string) modelDialect {
	if w, ok := r.modelDialects.Load(model); ok {
		return w.(modelDialect)
	}
	r.probing.Lock()
	defer r.probing.Unlock()
	w := modelDialect{Dialect: r.dialect}
	if f := r.cfg.AnswerFormat; f != FormatAuto {
		w.Format = f
	}
	return w
}

// learn stores a change of requests to model.
func (r *Reviewer) learn(ctx context.Context, model, why string, change func(*modelDialect) bool) bool {
	w := r.modelDialect(model)
	if !change(&w) {
		return false
	}
	r.modelDialects.Store(model, w)
	r.lg.InfoContext(ctx, "requests to the model endpoint changed", "reason", why, "answer_format", string(w.Format),
		"limit_field", w.LimitField, "without", w.without, "schema_in_prompt", w.inPrompt)
	return true
}

func (r *Reviewer) meter(model string) *meter {
	m, _ := r.meters.LoadOrStore(model, &meter{})
	return m.(*meter)
}

// probeTimeout bounds each request of a probe.
const probeTimeout = 5 * time.Second

// probe asks the endpoint for its family and for its context, once. An endpoint that
// does not answer has the dialect that its host name and the configuration give.
func (r *Reviewer) probe(ctx context.Context) {
	r.probing.Lock()
	defer r.probing.Unlock()
	if r.probed {
		return
	}
	if r.dialect.Name == generic().Name && r.cfg.Dialect == "auto" {
		var list struct {
			Data []struct {
				Owner string `json:"owned_by"`
			} `json:"data"`
		}
		if r.endpoint.get(ctx, "models", &list) == nil && len(list.Data) > 0 {
			if i := slices.IndexFunc(dialects, func(d Dialect) bool { return slices.Contains(d.Owners, list.Data[0].Owner) }); i >= 0 {
				r.dialect = dialects[i]
			}
		}
	}
	if path := r.dialect.ContextPath; path != "" && r.cfg.ContextTokens == 0 {
		var answer any
		if r.endpoint.get(ctx, path, &answer) == nil {
			r.context = smallest(answer, r.dialect.ContextField)
		}
	}
	r.probed = ctx.Err() == nil
}

// smallest returns the smallest positive number of that name anywhere in a JSON value,
// 0 if there is none: servers of several models list one for each.
func smallest(value any, name string) (least int) {
	take := func(n int) {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	switch v := value.(type) {
	case []any:
		for _, e := range v {
			take(smallest(e, name))
		}
	case map[string]any:
		for key, e := range v {
			if n, ok := e.(float64); ok && key == name && n < 1e9 {
				take(int(n))
			}
			take(smallest(e, name))
		}
	}
	return least
}

// get decodes the answer to a GET request. A path without a slash at its beginning is
// relative to the base URL.
func (e *Endpoint) get(ctx context.Context, path string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, min(probeTimeout, e.cfg.Timeout))
	defer cancel()
	target := e.at("/" + path)
	if strings.HasPrefix(path, "/") {
		u := *e.base
		u.Path, u.RawQuery = path, ""
		target = u.String()
	}
	_, err := e.call(ctx, http.MethodGet, target, nil, out)
	return err
}

// contextTokens returns how many tokens the server reads in one call to model, prompt and
// answer: as configured, reported or said in an error. It is 0 if that is not known.
func (r *Reviewer) contextTokens(model string) int {
	said := r.modelDialect(model).context
	r.probing.Lock()
	defer r.probing.Unlock()
	tokens := cmp.Or(r.cfg.ContextTokens, r.context, said)
	if said > 0 {
		tokens = min(tokens, said)
	}
	return tokens
}

// promptLimit returns the largest prompt: the configured one, or what the context of
// the server leaves beside the answer.
func (r *Reviewer) promptLimit() int {
	tokens := r.contextTokens(r.cfg.Model)
	if tokens == 0 {
		return r.cfg.MaxPromptTokens
	}
	return min(r.cfg.MaxPromptTokens, max(tokens-min(r.cfg.MaxAnswerTokens, tokens/4), minPromptTokens))
}

// answerLimit returns the largest answer of model beside a prompt of that many tokens: at
// most most, and what the prompt leaves of the context of the server, whose vocabulary may
// count half as many tokens more.
func (r *Reviewer) answerLimit(model string, prompt, most int) int {
	tokens := r.contextTokens(model)
	if tokens == 0 {
		return most
	}
	return min(most, max(tokens-prompt*3/2, tokens/4))
}
