package redaction

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/review"
)

// defaultMaxBytes bounds one payload: a changelist of text is a few hundred kilobytes.
const defaultMaxBytes = 32 << 20

// minKeyBytes is the shortest key that cannot be guessed.
const minKeyBytes = 16

// Config is the policy of a pipeline. All stages of a review need the same.
type Config struct {
	// Key makes the tags of placeholders and seals changes; at least 16 random
	// bytes. Required.
	Key secret.Value
	// Emails also masks e-mail addresses (security 9.5.2). Default false.
	Emails bool
	// InternalIPs also masks addresses of private networks. Default false.
	InternalIPs bool
	// HostSuffixes names the internal domains whose hosts are masked, such as
	// "corp.example.com". Default none.
	HostSuffixes []string
	// Rules adds token formats to the built-in ones, in the format of
	// tokens.txt, whose head describes it. Default none.
	Rules string
	// MaxBytes is the largest payload accepted; a larger one is blocked.
	// Default 32 MiB.
	MaxBytes int
}

func (c Config) withDefaults() Config {
	if c.MaxBytes == 0 {
		c.MaxBytes = defaultMaxBytes
	}
	return c
}

func (c Config) validate() error {
	if len(c.Key.Reveal()) < minKeyBytes {
		return fmt.Errorf("redaction key has %d bytes: want at least %d random ones", len(c.Key.Reveal()), minKeyBytes)
	}
	if c.MaxBytes < 0 {
		return fmt.Errorf("redaction limit of %d bytes is negative", c.MaxBytes)
	}
	return nil
}

// A Pipeline redacts. It is deterministic, holds no state between calls and is
// safe for concurrent use. Every error of its methods has class
// [failure.RedactionBlocked] and names no content: what cannot be vouched for
// does not pass (security 9.5.5).
type Pipeline struct {
	engine   *engine
	tagKey   []byte
	sealKey  []byte
	version  string
	maxBytes int
}

// New returns the pipeline for a policy.
func New(cfg Config) (*Pipeline, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, failure.New(failure.ConfigInvalid, err)
	}
	engine, err := newEngine(cfg)
	if err != nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "build redaction rules: %w", err)
	}
	p := &Pipeline{engine: engine, version: version(cfg), maxBytes: cfg.MaxBytes}
	if p.tagKey, err = hkdf.Key(sha256.New, []byte(cfg.Key.Reveal()), nil, "criticizer redaction tag", 32); err != nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "derive tag key: %w", err)
	}
	if p.sealKey, err = hkdf.Key(sha256.New, []byte(cfg.Key.Reveal()), nil, "criticizer redaction seal", 32); err != nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "derive seal key: %w", err)
	}
	return p, nil
}

// Version names the engine, its data and the policy. Two pipelines of one
// version mask the same.
func (p *Pipeline) Version() string { return p.version }

// String redacts one text that stands alone, such as an error chain.
func (p *Pipeline) String(s string) (Text, error) {
	var out Text
	pl := newPayload("text")
	pl.add(formText, s, &out)
	if err := p.redact(pl); err != nil {
		return Text{}, err
	}
	return out, nil
}

// Findings redacts the texts of findings, which a model wrote and which are
// therefore untrusted, before they are stored or mailed.
func (p *Pipeline) Findings(fs []review.Finding) ([]review.Finding, error) {
	texts := make([][5]Text, len(fs))
	pl := newPayload("findings")
	for i, f := range fs {
		for j, s := range []string{f.Path, f.Title, f.Explanation, f.Suggestion, f.Quote} {
			pl.add(formText, s, &texts[i][j])
		}
	}
	if err := p.redact(pl); err != nil {
		return nil, err
	}
	out := make([]review.Finding, len(fs))
	for i, f := range fs {
		t := texts[i]
		f.Path, f.Title, f.Explanation, f.Suggestion, f.Quote = t[0].s, t[1].s, t[2].s, t[3].s, t[4].s
		out[i] = f
	}
	return out, nil
}

// version hashes everything but the key that decides what is masked.
func version(cfg Config) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%q\n%t %t %q %d", ruleData(), cfg.Rules, cfg.Emails, cfg.InternalIPs, cfg.HostSuffixes, cfg.MaxBytes)
	return engineVersion + "-" + hex.EncodeToString(h.Sum(nil)[:6])
}
