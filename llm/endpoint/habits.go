package endpoint

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
)

// The fields that limit an answer.
const (
	limitTokens     = "max_tokens"
	limitCompletion = "max_completion_tokens"
)

// habits are what an endpoint's answers taught about requests to one model.
type habits struct {
	format  int    // index in formats of the best one that it supports
	without string // fields that it refuses, each followed by a blank
	answer  int    // largest answer limit that it accepts, 0 if not known
	context int    // tokens that it reads in one call, 0 if not known
}

func (h habits) lacks(field string) bool { return slices.Contains(strings.Fields(h.without), field) }

func (h habits) limitField() string {
	if h.lacks(limitTokens) {
		return limitCompletion
	}
	return limitTokens
}

// formatOf returns the format to ask r for.
func (h habits) formatOf(r Request) Format {
	return formats[max(slices.Index(formats, r.Format), h.format)]
}

// fields returns the fields of r that go-openai's request lacks, leaves out or refuses for
// some models.
func (h habits) fields(r Request) map[string]any {
	fields := map[string]any{h.limitField(): r.MaxTokens}
	maps.Copy(fields, r.Fields)
	if r.Whole {
		fields["stream"], fields["stream_options"] = false, nil
	}
	for name := range strings.FieldsSeq(h.without) {
		fields[name] = nil
	}
	return fields
}

// parameters are the fields that a request can do without, with the words by which errors name
// them.
var parameters = []struct {
	name  string
	words *regexp.Regexp
}{
	{limitCompletion, regexp.MustCompile(`\bmax_completion_tokens\b`)},
	{limitTokens, regexp.MustCompile(`\bmax_tokens\b`)},
	{"response_format", regexp.MustCompile(`\bresponse[_ ]?format\b|\bjson[_ ]?(?:schema|object|mode)\b|\bstructured[_ ]outputs?\b|\bgrammar\b|\bguided_json\b|\btext\.format\b`)},
	{"temperature", regexp.MustCompile(`\btemperature\b`)},
	{"top_p", regexp.MustCompile(`\btop_p\b`)},
	{"top_k", regexp.MustCompile(`\btop_k\b`)},
	{"seed", regexp.MustCompile(`\bseed\b`)},
	{"reasoning_effort", regexp.MustCompile(`\breasoning[_. ]?effort\b|\breasoning (?:is|parameter)\b|\bthinking (?:is|parameter)\b|['"](?:reasoning|thinking)['"]`)},
	{"stream_options", regexp.MustCompile(`\bstream_options\b|\binclude_usage\b`)},
	{"stream", regexp.MustCompile(`\bstream(?:ing)?\b`)},
}

// refusal matches the words for a field that is refused.
var refusal = regexp.MustCompile(`support|failed to parse|unknown|unrecognized|unexpected|not permitted|forbidden|\bextra\b|invalid|not allowed|unavailable|deprecated|must be|only|incorrect|disallowed|remove|instead|not accept|cannot|conflict|not (?:a )?valid|not (?:enabled|available|compatible|implemented)|incompatible`)

// parameter returns the field that s refuses, "" if it names none that a request can do
// without. If it names several, the one that it names first counts.
func (s said) parameter() string {
	first, at := "", len(s.text)+1
	for _, p := range parameters {
		if slices.ContainsFunc(s.params, p.words.MatchString) {
			return p.name
		}
		if i := p.words.FindStringIndex(s.text); i != nil && i[0] < at && refusal.MatchString(s.text) {
			first, at = p.name, i[0]
		}
	}
	return first
}

// numbers matches the numbers of tokens in an error.
var numbers = regexp.MustCompile(`\b\d{2,9}\b`)

// minAnswer is the smallest answer limit that is tried.
const minAnswer = 512

// after returns the habits and the answer limit with which r is asked again after err; again
// is false if nothing about r can be changed.
func (h habits) after(err error, r Request) (next habits, limit int, again bool) {
	e, _ := errors.AsType[Error](err)
	if e.text == "" {
		return h, r.MaxTokens, false
	}
	form := ofForm(e.said.status) && e.said.status != http.StatusRequestEntityTooLarge
	m, context := e.said.meaning(), e.said.context()
	switch {
	case m == answerLimit && form && context <= r.MaxTokens:
		for _, text := range numbers.FindAllString(strings.ReplaceAll(e.said.text, ",", ""), -1) {
			if n, _ := strconv.Atoi(text); n < r.MaxTokens {
				limit = max(limit, n)
			}
		}
		if limit < minAnswer { // it does not say how many
			limit = r.MaxTokens / 2
		}
		h.answer = limit
		return h, limit, limit >= minAnswer
	case m.class == failure.TooLarge && context > 0 && (h.context == 0 || context < h.context), m == answerLimit && form:
		h.context = context
		limit = context - e.said.prompt(r.Tokens*3/2) // its vocabulary may count half as many tokens more
		return h, limit, limit < r.MaxTokens && limit >= min(minAnswer, context/4)
	case form:
		was := h
		h.drop(e.said.parameter(), r)
		return h, r.MaxTokens, h != was
	}
	return h, r.MaxTokens, false
}

// drop leaves out the field name of requests like r, or replaces it.
func (h *habits) drop(name string, r Request) {
	_, ours := r.Fields[name]
	switch {
	case name == "" || h.lacks(name) || name == limitCompletion && h.lacks(limitTokens): // one of both is needed
	case name == limitTokens:
		h.without += name + " "
	case name == "response_format":
		if at := slices.Index(formats, h.formatOf(r)); at+1 < len(formats) {
			h.format = at + 1
		}
	case name == "stream" && !r.Whole && !h.lacks("stream_options"):
		h.without += "stream_options stream "
	case ours, (name == "stream" || name == "stream_options") && !r.Whole:
		h.without += name + " "
	}
}

// promptLength matches the tokens that an endpoint counts in a prompt. At least so many is what it
// computes from the limits.
var promptLength = regexp.MustCompile(`(at least )?\b(\d{2,9}) (?:tokens )?(?:in (?:the|your) (?:messages|prompt)|from the input|of text input|input tokens|` + "`inputs`" + `)|input_tokens: (\d+)`)

// prompt returns the tokens of the prompt as s counts them, or else most.
func (s said) prompt(most int) int {
	if m := promptLength.FindStringSubmatch(s.text); m != nil && m[1] == "" {
		n, _ := strconv.Atoi(m[2] + m[3])
		return n
	}
	return most
}

// contextLength matches the number of tokens that an endpoint says it reads in one call, in an
// error about a prompt and answer that are too long.
var contextLength = regexp.MustCompile(`(?:<=?|>) ?(\d{4,9})\b|\b(?:maximum|limit|context|up to|at most|supports|only|allowed|range of [a-z ]+ should be \[1)\D{0,40}?(\d{4,9})\b|\b(\d{4,9})(?: tokens?)? (?:maximum|limit|context)`)

// context returns the smallest number of tokens that s says the endpoint reads in one call, 0
// if it says none.
func (s said) context() (least int) {
	for _, m := range contextLength.FindAllStringSubmatch(strings.ReplaceAll(s.text, ",", ""), -1) {
		if n, err := strconv.Atoi(m[1] + m[2] + m[3]); err == nil && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

func (e *Endpoint) habitsOf(model string) habits {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.habits[model]
}

// remember stores how requests to model are made from now on.
func (e *Endpoint) remember(ctx context.Context, model string, was, h habits) {
	if h == was {
		return
	}
	e.mu.Lock()
	e.habits[model] = h
	e.mu.Unlock()
	e.lg.InfoContext(ctx, "requests to the model endpoint changed", "model", model, "answer_format", string(formats[h.format]),
		"limit_field", h.limitField(), "without", strings.Fields(h.without), "max_answer_tokens", h.answer, "context_tokens", h.context)
}

// Context returns how many tokens the endpoint reads in one call to model, prompt and answer,
// as it reported or said in an error. It is 0 if that is not known.
func (e *Endpoint) Context(model string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if said := e.habits[model].context; said > 0 && (e.context == 0 || said < e.context) {
		return said
	}
	return e.context
}
