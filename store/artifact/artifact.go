// Package artifact keeps large or sensitive bytes out of Temporal's history:
// they are compressed, encrypted and stored for a limited time, and history
// carries only references (security 9.4).
package artifact

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/review"
)

// maxBytes bounds an artifact before compression. It is far above any change
// that can be reviewed; it keeps one of them from taking a worker's memory.
const maxBytes = 64 << 20

// RewriteTTL is how long the texts of the rewrite queue are kept: a job may wait
// for long, and its result must be fetched.
const RewriteTTL = 30 * 24 * time.Hour

// maxTTL is how long an artifact may be kept (security 9.4.1). The database
// holds the same limits.
var maxTTL = map[review.Namespace]time.Duration{
	review.NamespaceRaw:      7 * 24 * time.Hour,
	review.NamespaceRedacted: 30 * 24 * time.Hour,
	review.NamespaceReport:   30 * 24 * time.Hour,
	review.NamespaceAnswer:   30 * 24 * time.Hour,
	review.NamespaceRewrite:  RewriteTTL,
}

// blobs are the stored bodies of one namespace.
type blobs interface {
	// PutBlob stores body for ttl; again under the same id it extends the time.
	PutBlob(ctx context.Context, id string, body []byte, ttl time.Duration) error
	// Blob returns failure.ArtifactExpired for what is past its time.
	Blob(ctx context.Context, id string) ([]byte, error)
}

// A Store keeps the artifacts of one namespace. Its methods may be called
// concurrently.
type Store struct {
	blobs    blobs
	ns       review.Namespace
	ttl      time.Duration
	keyset   secret.Value
	keys     atomic.Pointer[keys] // of the keyset as it was last
	packer   *zstd.Encoder
	unpacker *zstd.Decoder
}

// New returns the store of ns, which keeps artifacts for ttl. keyset is one
// that [NewKeyset] made; what any of its keys has sealed can be read, its
// primary key seals. It may be renewed while the store is in use. Errors are of
// class CONFIG_INVALID.
func New(b blobs, ns review.Namespace, keyset secret.Value, ttl time.Duration) (*Store, error) {
	if limit := maxTTL[ns]; ttl <= 0 || ttl > limit {
		return nil, failure.Errorf(failure.ConfigInvalid, "keep %q artifacts for %s: want more than 0 and at most %s", ns, ttl, limit)
	}
	packer, err := zstd.NewWriter(nil)
	if err != nil {
		return nil, fmt.Errorf("make compressor: %w", err)
	}
	unpacker, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxBytes), zstd.WithDecoderConcurrency(0))
	if err != nil {
		return nil, fmt.Errorf("make decompressor: %w", err)
	}
	s := &Store{blobs: b, ns: ns, ttl: ttl, keyset: keyset, packer: packer, unpacker: unpacker}
	_, err = s.currentKeys()
	return s, err
}

// Put stores body and returns its reference. The same bytes have the same
// reference as long as the keyset stays the same, so a retry stores nothing twice.
//
// The reference is a keyed hash, not a plain one: it is shown in Temporal's
// history and in logs, where nobody may confirm a guess of the content, nor see
// that a raw and a redacted artifact are equal.
func (s *Store) Put(ctx context.Context, body []byte) (review.ArtifactRef, error) {
	return s.put(ctx, body, body)
}

// PutAs stores body under a name of the caller's, such as the hash of a
// question, in place of what was stored under it before. The name cannot be told
// from what is stored.
func (s *Store) PutAs(ctx context.Context, name string, body []byte) error {
	_, err := s.put(ctx, []byte(named+name), body)
	return err
}

// named begins what stands for a name: no body begins so.
const named = "\x00name\x00"

// put stores body under the keyed hash of what identifies it.
func (s *Store) put(ctx context.Context, identity, body []byte) (review.ArtifactRef, error) {
	if len(body) > maxBytes {
		return "", failure.Errorf(failure.TooLarge, "store %s artifact of %d bytes: the limit is %d", s.ns, len(body), maxBytes)
	}
	k, err := s.currentKeys()
	if err != nil {
		return "", err
	}
	ref := s.ref(k.id(identity))
	sealed, err := k.seal.Encrypt(s.packer.EncodeAll(body, nil), []byte(ref))
	if err != nil {
		return "", failure.Errorf(failure.InvariantViolated, "seal artifact %s: %w", ref, err)
	}
	if err := s.blobs.PutBlob(ctx, k.id(identity), sealed, s.ttl); err != nil {
		return "", fmt.Errorf("store artifact %s: %w", ref, err)
	}
	return ref, nil
}

// GetAs returns what was stored last under name. Errors are those of
// [Store.Get].
func (s *Store) GetAs(ctx context.Context, name string) ([]byte, error) {
	k, err := s.currentKeys()
	if err != nil {
		return nil, err
	}
	return s.Get(ctx, s.ref(k.id([]byte(named+name))))
}

// id is the keyed hash of what identifies an artifact.
func (k *keys) id(identity []byte) string {
	mac := hmac.New(sha256.New, k.ids)
	mac.Write(identity)
	return hex.EncodeToString(mac.Sum(nil))
}

// Get returns the bytes behind ref. The error is of class ARTIFACT_EXPIRED when
// their time is over, and of class CONFIG_INVALID when they cannot be opened:
// they were altered, or their key was taken from the keyset too early. A
// reference to another namespace is refused.
func (s *Store) Get(ctx context.Context, ref review.ArtifactRef) ([]byte, error) {
	ns, id, _ := strings.Cut(string(ref), ":")
	if ns != string(s.ns) {
		return nil, failure.Errorf(failure.InvariantViolated, "read artifact %q: it is not of namespace %s", ref, s.ns)
	}
	sealed, err := s.blobs.Blob(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read artifact %s: %w", ref, err)
	}
	k, err := s.currentKeys()
	if err != nil {
		return nil, err
	}
	packed, err := k.seal.Decrypt(sealed, []byte(ref))
	if err != nil {
		return nil, failure.Errorf(failure.ConfigInvalid,
			"open artifact %s: it was altered or the keyset lacks its key: restore the key", ref)
	}
	body, err := s.unpacker.DecodeAll(packed, nil)
	if err != nil {
		return nil, failure.Errorf(failure.InvariantViolated, "unpack artifact %s: %w", ref, err)
	}
	return body, nil
}

// ref is also what the body is authenticated with: a body moved to another id
// or namespace does not open.
func (s *Store) ref(id string) review.ArtifactRef {
	return review.ArtifactRef(string(s.ns) + ":" + id)
}
