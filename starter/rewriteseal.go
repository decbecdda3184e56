package main

import (
	"encoding/json"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store/artifact"
)

// A sealer encrypts and decrypts texts of the rewrite queue.
type sealer struct{ texts *artifact.Store }

func newSealer(cfg *config.Config) (sealer, error) {
	texts, err := artifact.New(nil, artifact.Config{
		Namespace: review.NamespaceRewrite, Keyset: cfg.Keysets.Rewrite, TTL: artifact.RewriteTTL,
		KEK: artifact.KEK{URI: cfg.Artifacts.KEKURI, Token: cfg.Artifacts.KEKToken},
	})
	return sealer{texts}, err
}

// seal encrypts a message for the worker of the queue.
func (s sealer) seal(m message) (sealed rewrite.Sealed, err error) {
	if sealed.Text.ID, sealed.Text.Body, err = s.texts.Seal([]byte(m.Text)); err != nil || len(m.Preferences) == 0 {
		return sealed, err
	}
	preferences, err := json.Marshal(m.Preferences)
	if err != nil {
		return sealed, err
	}
	sealed.Preferences = new(rewrite.SealedText)
	sealed.Preferences.ID, sealed.Preferences.Body, err = s.texts.Seal(preferences)
	return sealed, err
}
