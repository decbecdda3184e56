package wiring

import (
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/artifact"
)

// Artifacts configures the artifacts of a namespace.
func Artifacts(cfg *config.Config, ns review.Namespace) artifact.Config {
	of := map[review.Namespace]struct {
		keyset secret.Value
		ttl    time.Duration
	}{
		review.NamespaceRaw:      {cfg.Keysets.Raw, cfg.Artifacts.RawTTL},
		review.NamespaceRedacted: {cfg.Keysets.Redacted, cfg.Artifacts.RedactedTTL},
		review.NamespaceReport:   {cfg.Keysets.Report, cfg.Artifacts.ReportTTL},
		review.NamespaceAnswer:   {cfg.Keysets.Answers, cfg.Artifacts.RedactedTTL},
		review.NamespaceRewrite:  {cfg.Keysets.Rewrite, artifact.RewriteTTL},
	}[ns]
	return artifact.Config{Namespace: ns, Keyset: of.keyset, KEK: KEK(cfg), TTL: of.ttl}
}

// KEK is the key that encrypts the keysets.
func KEK(cfg *config.Config) artifact.KEK {
	return artifact.KEK{URI: cfg.Artifacts.KEKURI, Token: cfg.Artifacts.KEKToken}
}
