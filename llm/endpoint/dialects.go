package endpoint

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
)

// A dialect is what cannot be learned from the errors of one family of servers.
type dialect struct {
	Name string
	// Hosts are ends of the host names of the family's endpoints, and Owners what its
	// list of models has in owned_by.
	Hosts, Owners []string
	// KeyHeader is the header of the key; "" is a bearer token.
	KeyHeader string
	// ContextField is what tells how many tokens a server reads, "" if nothing does, in the
	// answer of ContextPath or, if that is "", of the list of models.
	ContextField, ContextPath string
	// ContextSetting is the server's setting for it, for people.
	ContextSetting string
	// Aliases is set if the endpoint answers as another model than the one asked for: a
	// dated version, or the model of a deployment.
	Aliases bool
}

// dialects are all families; the last entry is the dialect of unknown servers.
var dialects = []dialect{
	{Name: "azure", Aliases: true, Hosts: []string{".azure.com"}, KeyHeader: "api-key"},
	{Name: "hosted", Aliases: true, Hosts: []string{"api.openai.com", "api.anthropic.com", ".googleapis.com", "openrouter.ai"}, Owners: []string{"openai", "system", "openai-internal", "anthropic", "google"}},
	{Name: "vllm", Owners: []string{"vllm", "sglang"}, ContextField: "max_model_len", ContextSetting: "--max-model-len"},
	{Name: "llamacpp", Owners: []string{"llamacpp"}, ContextPath: "/props", ContextField: "n_ctx", ContextSetting: "--ctx-size"},
	{Name: "ollama", Owners: []string{"library"}, ContextPath: "/api/ps", ContextField: "context_length", ContextSetting: "OLLAMA_CONTEXT_LENGTH"},
	{Name: "lmstudio", Owners: []string{"organization_owner"}, ContextPath: "/api/v0/models", ContextField: "loaded_context_length", ContextSetting: "Context Length"},
	{Name: "generic"},
}

// dialectOf returns the dialect that the configuration names, or else the dialect of the
// host.
func dialectOf(name, host string) dialect {
	for _, d := range dialects {
		if d.Name == name || name == "auto" && slices.ContainsFunc(d.Hosts, func(end string) bool { return strings.HasSuffix(host, end) }) {
			return d
		}
	}
	return dialects[len(dialects)-1]
}

// modelVersion matches what an endpoint may append to the name of a model: nothing, or a
// version or date.
var modelVersion = regexp.MustCompile(`^(?:[-@:]v?[0-9][0-9.-]*)?$`)

// CheckModel returns an error if the endpoint answered as another model than the one asked
// for. Its text is ours: the name in the answer is untrusted.
func (e *Endpoint) CheckModel(asked string, a Answer) error {
	short := func(name string) string {
		name = name[strings.LastIndexAny(name, "/\\")+1:]
		return strings.TrimSuffix(strings.ToLower(name), ":latest")
	}
	answered := short(a.Model)
	version, extended := strings.CutPrefix(answered, short(asked))
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dialect.Aliases || answered == "" || extended && modelVersion.MatchString(version) {
		return nil
	}
	return failure.Errorf(failure.ConfigInvalid, "model endpoint answered as another model than %s: set llm.model to a name that its list of models has", asked)
}

// ContextSetting returns the setting of the server for the length of its context.
func (e *Endpoint) ContextSetting() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return cmp.Or(e.dialect.ContextSetting, "its context length")
}

// probeTimeout bounds each request of a probe. A silent endpoint is asked again after probePause.
const (
	probeTimeout = 5 * time.Second
	probePause   = time.Minute
)

// Probe asks the endpoint for its family and for its context, until it has reported one: a
// server may report it only while the model is loaded. An endpoint that does not list its
// models has the dialect that its host name and the configuration give. If it does not answer, or
// with a server error, a later probe asks again: it may start after this process.
func (e *Endpoint) Probe(ctx context.Context) {
	e.mu.Lock()
	wasSilent := !e.silent.IsZero()
	e.mu.Unlock()
	if !wasSilent {
		e.probing.Lock()
	} else if !e.probing.TryLock() {
		return
	}
	defer e.probing.Unlock()
	if e.probed || time.Since(e.silent) < probePause {
		return
	}
	get := func(target string) (answer json.RawMessage, err error) {
		_, err = e.call(ctx, min(probeTimeout, e.cfg.Timeout), http.MethodGet, target, nil, &answer)
		return answer, err
	}
	d, known, silent := e.dialect, 0, false
	if d.Name == "generic" {
		var list struct {
			Data []struct {
				Owner string `json:"owned_by"`
			} `json:"data"`
		}
		answer, err := get(e.at("/models"))
		refused, isHTTP := errors.AsType[Error](err)
		silent = err != nil && failure.ClassOf(err) != failure.SchemaInvalid && (!isHTTP || refused.said.status >= 500)
		if json.Unmarshal(answer, &list) == nil && len(list.Data) > 0 {
			if i := slices.IndexFunc(dialects, func(d dialect) bool { return slices.Contains(d.Owners, list.Data[0].Owner) }); i >= 0 {
				d = dialects[i]
			}
		}
	}
	if d.ContextField != "" {
		target := e.at("/models")
		if d.ContextPath != "" {
			target = e.base.Scheme + "://" + e.base.Host + d.ContextPath
		}
		number := regexp.MustCompile(`"` + d.ContextField + `"\s*:\s*(\d{1,9})\b`)
		answer, _ := get(target)
		for _, m := range number.FindAllSubmatch(answer, -1) { // servers of several models list one for each
			if n, _ := strconv.Atoi(string(m[1])); n > 0 && (known == 0 || n < known) {
				known = n
			}
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dialect, e.context = d, known
	if silent && ctx.Err() == nil {
		e.silent = time.Now()
	}
	e.probed = ctx.Err() == nil && !silent && (known > 0 || d.ContextField == "") // Ollama reports it once the model is loaded
}
