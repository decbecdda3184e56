package redaction

import (
	"bytes"
	"cmp"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
	"github.com/criticizer/criticizer/review"
)

const (
	defaultMaxBytes = 32 << 20 // a changelist of text is a few hundred kilobytes
	minKeyBytes     = 16       // a shorter key could be guessed
)

// Config is the policy of a pipeline. All stages of a review need the same one.
type Config struct {
	// Whether mail addresses are masked in prompts.
	Emails bool `yaml:"emails" default:"false"`
	// Internal domains, such as corp.example.com, whose host names are masked.
	HostSuffixes []string `yaml:"host_suffixes"`
	// Whether private network addresses are masked.
	InternalIPs bool `yaml:"internal_ips" default:"false"`
	// Files with more rules, in the format that docs/redaction.md describes. The
	// examples of their rules are checked when a process starts.
	RuleFiles []string `yaml:"rules"`
	// Key of the placeholder tags and of the seal on redacted changes: at least 16
	// random bytes, the same for all workers that redact or open a change.
	Key secret.Value `yaml:"key" required:"at least 16 random bytes"`
	// Rules adds rules to the built-in ones: [LoadRules] reads them from RuleFiles. Default
	// none.
	Rules string
	// MaxBytes is the largest payload accepted. A larger payload is blocked.
	// Default 32 MiB.
	MaxBytes int
}

// A Pipeline redacts. It is deterministic, keeps no state between calls and is
// safe for concurrent use. The errors of its methods have class
// [failure.RedactionBlocked] and quote no content: a text that cannot be
// redacted reliably is not passed on (security 9.5.5).
type Pipeline struct {
	engine   *engine
	tagKey   []byte
	sealKey  []byte
	version  string
	maxBytes int
}

// New returns the pipeline for a policy.
func New(cfg Config) (*Pipeline, error) {
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, defaultMaxBytes)
	if n := len(cfg.Key.Reveal()); n < minKeyBytes {
		return nil, failure.Errorf(failure.ConfigInvalid, "redaction key has %d bytes: want at least %d random bytes", n, minKeyBytes)
	} else if cfg.MaxBytes < 0 {
		return nil, failure.Errorf(failure.ConfigInvalid, "redaction limit of %d bytes is negative", cfg.MaxBytes)
	}
	engine, err := newEngine(cfg)
	if err != nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "build redaction rules: %w", err)
	}
	p := &Pipeline{engine: engine, version: version(cfg), maxBytes: cfg.MaxBytes}
	for purpose, key := range map[string]*[]byte{"tag": &p.tagKey, "seal": &p.sealKey} {
		if *key, err = hkdf.Key(sha256.New, []byte(cfg.Key.Reveal()), nil, "criticizer redaction "+purpose, 32); err != nil {
			return nil, failure.Errorf(failure.ConfigInvalid, "derive %s key: %w", purpose, err)
		}
	}
	return p, nil
}

// version hashes everything but the key that decides what is masked.
func version(cfg Config) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s%s\n%q\n%t %t %q %d", builtinRules, judge.Digest, cfg.Rules, cfg.Emails, cfg.InternalIPs, cfg.HostSuffixes, cfg.MaxBytes)
	return engineVersion + "-" + hex.EncodeToString(h.Sum(nil)[:6])
}

// Version names the engine, its data and the policy. Pipelines of one version mask alike.
func (p *Pipeline) Version() string { return p.version }

// String redacts a single text, such as an error chain.
func (p *Pipeline) String(s string) (Text, error) {
	t, _, _, err := p.Explain(s, "", false)
	return t, err
}

// A Mark is a range and the rule that masks it, or does not. It holds nothing of the secret.
type Mark struct {
	Start, End int // bytes of the text, in which U+FFFD replaces invalid UTF-8
	Line       int // from 1
	Class      string
	Rule       string
	// Place is the position of the value relative to its name. Empty for other rules.
	Place string
	// Classifier is the predicate that decided. Empty if none was asked.
	Classifier string
	// Example is an example of the rule, in which « and » enclose the secret.
	Example string
}

// Explain redacts a text as [Pipeline.String] does and returns which rule masked which range, and the near
// misses: ranges without a class that a rule matched and that a classifier left as they are. The name of
// its file, which may be empty, gives the language. isDiff forces the text to be read as a diff; without
// it, a text that looks like a diff is read as one.
func (p *Pipeline) Explain(s, file string, isDiff bool) (t Text, masked, nearMisses []Mark, err error) {
	pl := &payload{Pipeline: p, scope: "text"}
	pt := pl.add(s, &t)
	pt.lang, pt.isDiff = lex.Of(file), isDiff
	if err := pl.redact(); err != nil {
		return Text{}, nil, nil, err
	}
	pt.left = slices.DeleteFunc(pt.left, func(m span) bool {
		i := sort.Search(len(pt.spans), func(i int) bool { return pt.spans[i].end > m.start })
		return i < len(pt.spans) && pt.spans[i].start < m.end
	})
	marks := func(spans []span) (out []Mark) {
		line, at := 1, 0
		for _, s := range spans {
			line += strings.Count(pt.raw[at:s.start], "\n")
			at = s.start
			out = append(out, Mark{s.start, s.end, line, s.Class, s.Rule, s.Place, s.Why, p.engine.examples[s.Rule]})
		}
		return out
	}
	return t, marks(pt.spans), marks(pt.left), nil
}

// Findings redacts the texts of findings before they are stored or mailed: a
// model wrote them, so they are untrusted.
func (p *Pipeline) Findings(fs []review.Finding) ([]review.Finding, error) {
	out := slices.Clone(fs)
	texts := make([][8]Text, len(fs))
	fieldsOf := func(f *review.Finding) [8]*string {
		return [8]*string{&f.Path, &f.Title, &f.Explanation, &f.Suggestion, &f.Quote, &f.Replacement, &f.Before, &f.After}
	}
	pl := &payload{Pipeline: p, scope: "findings"}
	for i := range out {
		for j, s := range fieldsOf(&out[i]) {
			pl.add(*s, &texts[i][j])
		}
	}
	if err := pl.redact(); err != nil {
		return nil, err
	}
	for i := range out {
		for j, s := range fieldsOf(&out[i]) {
			*s = texts[i][j].s
		}
	}
	return out, nil
}

// Verify blocks a change that holds a text which no pipeline of this version
// made (security 9.5.5). Only this package makes a Text, but another version may
// have made it, or it may have been changed by unsafe means.
func (p *Pipeline) Verify(c Change) (err error) {
	defer recoverBlocked(&err)
	for _, f := range c.Files {
		if len(f.Action) > 16 || !lex.AllIn(string(f.Action), &actionSet) {
			return failure.Errorf(failure.RedactionBlocked, "verify changelist %d: the action on a file is not one of p4's", c.Number)
		}
	}
	for _, t := range c.texts() {
		if err := p.VerifyTexts(*t); err != nil {
			return err
		}
	}
	return nil
}

// VerifyTexts blocks texts that no pipeline of this version made (security 9.5.5).
func (p *Pipeline) VerifyTexts(texts ...Text) error {
	for _, t := range texts {
		if !p.issued(t) {
			return failure.Errorf(failure.RedactionBlocked, "verify text: not made by redaction version %s: redact it again", p.version)
		}
	}
	return nil
}

// Compose returns s, which the caller has composed of texts of p and of words of its own, as a
// Text. Like Check, it blocks a text that holds a secret of a form that needs no context.
func (p *Pipeline) Compose(s string) (t Text, err error) {
	defer recoverBlocked(&err)
	if len(s) > p.maxBytes {
		return Text{}, failure.Errorf(failure.RedactionBlocked, "compose a text: %d bytes are more than the limit of %d", len(s), p.maxBytes)
	}
	if rule := p.engine.contextFreeRule(s); rule != "" {
		return Text{}, failure.Errorf(failure.RedactionBlocked, "compose a text: it holds a secret that rule %s masks", rule)
	}
	return p.text(s), nil
}

// Check is the last check of a request body before it is sent (security 9.5.5).
// It blocks a body that is not one JSON value, is over the size limit, or holds
// a secret of a form that needs no context, either in the bytes as they are or
// in a decoded string. Check is not a second redaction: a body made of Text passes
// unless a caller bypassed the pipeline.
func (p *Pipeline) Check(body []byte) (err error) {
	defer recoverBlocked(&err)
	if len(body) > p.maxBytes {
		return failure.Errorf(failure.RedactionBlocked, "check request: %d bytes are more than the limit of %d", len(body), p.maxBytes)
	}
	if !json.Valid(body) {
		return failure.Errorf(failure.RedactionBlocked, "check request: the body is not JSON")
	}
	if rule := p.engine.contextFreeRule(string(body)); rule != "" {
		return failure.Errorf(failure.RedactionBlocked, "check request: the body holds a secret that rule %s masks", rule)
	}
	for d := json.NewDecoder(bytes.NewReader(body)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return failure.Errorf(failure.RedactionBlocked, "check request: the body cannot be decoded")
		}
		s, _ := token.(string)
		if rule := p.engine.contextFreeRule(s); rule != "" {
			return failure.Errorf(failure.RedactionBlocked, "check request: a string of the body holds a secret that rule %s masks", rule)
		}
	}
}

// actionSet has the bytes of the actions of p4, such as move/delete.
var actionSet = lex.SetOf(lex.Lowers, "/")
