package main

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/store/artifact"
)

// blobs holds sealed texts in memory; the sealer does not store them.
type blobs map[string][]byte

// PutBlob implements artifact.Blobs.
func (b blobs) PutBlob(_ context.Context, id string, body []byte, _ time.Duration) error {
	b[id] = body
	return nil
}

// Blob implements artifact.Blobs.
func (b blobs) Blob(_ context.Context, id string) ([]byte, error) {
	body, ok := b[id]
	if !ok {
		return nil, failure.Errorf(failure.ArtifactExpired, "text %s is not in memory", id)
	}
	return body, nil
}

// A sealer encrypts and decrypts texts of the rewrite queue.
type sealer struct {
	blobs blobs
	texts *artifact.Store
}

func newSealer(cfg *config.Config) (sealer, error) {
	held := blobs{}
	texts, err := artifact.New(held, review.NamespaceRewrite, cfg.Artifacts.Keyset, artifact.RewriteTTL)
	return sealer{held, texts}, err
}

// seal encrypts a message for the worker of the queue.
func (s sealer) seal(ctx context.Context, m message) (rewrite.Sealed, error) {
	text, err := s.sealOne(ctx, []byte(m.Text))
	if err != nil || len(m.Preferences) == 0 {
		return rewrite.Sealed{Text: text}, err
	}
	encoded, err := json.Marshal(m.Preferences)
	if err != nil {
		return rewrite.Sealed{}, err
	}
	preferences, err := s.sealOne(ctx, encoded)
	return rewrite.Sealed{Text: text, Preferences: &preferences}, err
}

func (s sealer) sealOne(ctx context.Context, text []byte) (rewrite.SealedText, error) {
	ref, err := s.texts.Put(ctx, text)
	_, id, _ := strings.Cut(string(ref), ":")
	return rewrite.SealedText{ID: id, Body: s.blobs[id]}, err
}

func (s sealer) open(ctx context.Context, sealed rewrite.SealedText) (string, error) {
	s.blobs[sealed.ID] = sealed.Body
	text, err := s.texts.Get(ctx, review.ArtifactRef(string(review.NamespaceRewrite)+":"+sealed.ID))
	return string(text), err
}
