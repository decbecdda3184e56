// Package artifact stores large or sensitive bytes outside of Temporal's history:
// compressed, encrypted and for a limited time. The history holds only references
// (security 9.4).
package artifact

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/review"
)

// maxBytes bounds an artifact before compression, to protect a worker's memory. A change
// that can be reviewed is much smaller.
const maxBytes = 64 << 20

// The longest TTLs of raw artifacts and of others (security 9.4.2). The database has the same
// limits.
const (
	maxRawTTL = 7 * 24 * time.Hour
	maxTTL    = 30 * 24 * time.Hour
)

// The types of the references to artifacts, for users that have no reviews.
type (
	// A Ref is stored bytes by namespace and hash.
	Ref = review.ArtifactRef
	// An Owner is the review that an artifact is stored for. The zero Owner owns what belongs
	// to no review.
	Owner = review.Owner
	// A Namespace separates artifacts by who may read them.
	Namespace = review.Namespace
)

// blobs are the stored bodies of one namespace.
type blobs interface {
	// PutBlob stores body for ttl; storing an id again can extend its time.
	PutBlob(ctx context.Context, id string, body []byte, ttl time.Duration) error
	// Blob returns an error of class ARTIFACT_EXPIRED if the body has expired.
	Blob(ctx context.Context, id string) ([]byte, error)
}

// A Store stores the artifacts of one namespace. Its methods may be called
// concurrently.
type Store struct {
	blobs        blobs
	cfg          Config
	keys         atomic.Pointer[keys] // of the last used keyset
	compressor   *zstd.Encoder
	decompressor *zstd.Decoder
}

// A Config describes the artifacts of one namespace.
type Config struct {
	Namespace review.Namespace
	// Raw is set for content that was not redacted, which is kept for 7 days at most, not 30.
	Raw bool
	// Keyset is the namespace's own. Its primary key encrypts, and every key decrypts. It
	// may be renewed while the store is in use.
	Keyset secret.Value
	// KEK encrypts the keyset. Default: none.
	KEK KEK
	// TTL is how long artifacts are stored. It has no default.
	TTL time.Duration
}

// New returns a store. Errors have class CONFIG_INVALID, or the class of the key
// management service's answer.
func New(b blobs, cfg Config) (*Store, error) {
	limit := maxTTL
	if cfg.Raw {
		limit = maxRawTTL
	}
	if cfg.Namespace == "" || cfg.TTL <= 0 || cfg.TTL > limit {
		return nil, failure.Errorf(failure.ConfigInvalid, "store %q artifacts for %s: want more than 0 and at most %s", cfg.Namespace, cfg.TTL, limit)
	}
	compressor, err := zstd.NewWriter(nil)
	if err != nil {
		return nil, fmt.Errorf("create compressor: %w", err)
	}
	decompressor, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxBytes), zstd.WithDecoderConcurrency(0))
	if err != nil {
		return nil, fmt.Errorf("create decompressor: %w", err)
	}
	s := &Store{blobs: b, cfg: cfg, compressor: compressor, decompressor: decompressor}
	_, err = s.currentKeys()
	return s, err
}

// Put stores body for the review of and returns its reference. While the keyset is the
// same, the same bytes of one review have the same reference, so that a retry stores
// nothing twice.
//
// The reference is a keyed hash: it is part of Temporal's history and of logs, whose
// readers must not be able to confirm a guess of the content, or to see that a raw and a
// redacted artifact are equal.
func (s *Store) Put(ctx context.Context, of review.Owner, body []byte) (review.ArtifactRef, error) {
	return s.put(ctx, of, slices.Concat(header(of), body), body)
}

// PutAs stores body for the review of, under a name of the caller, such as the hash of a
// request, and replaces the body before. The stored form does not reveal the name.
func (s *Store) PutAs(ctx context.Context, of review.Owner, name string, body []byte) error {
	_, err := s.put(ctx, of, []byte(named+name), body)
	return err
}

// named is the prefix of the identity of a name: no body has it.
const named = "\x00name\x00"

// put stores body under the keyed hash of its identity.
func (s *Store) put(ctx context.Context, of review.Owner, identity, body []byte) (review.ArtifactRef, error) {
	id, sealed, err := s.seal(of, identity, body)
	if err != nil {
		return "", err
	}
	if err := s.blobs.PutBlob(ctx, id, sealed, s.cfg.TTL); err != nil {
		return "", fmt.Errorf("store artifact %s: %w", s.ref(id), err)
	}
	return s.ref(id), nil
}

// Seal returns the id and the stored form of body, which belongs to no review, without
// storing it.
func (s *Store) Seal(body []byte) (id string, sealed []byte, err error) {
	return s.seal(review.Owner{}, body, body)
}

func (s *Store) seal(of review.Owner, identity, body []byte) (id string, sealed []byte, err error) {
	if len(body) > maxBytes {
		return "", nil, failure.Errorf(failure.TooLarge, "store %s artifact of %d bytes: the limit is %d", s.cfg.Namespace, len(body), maxBytes)
	}
	k, err := s.currentKeys()
	if err != nil {
		return "", nil, err
	}
	id = k.id(identity)
	head := header(of)
	sealed, err = k.seal.Encrypt(s.compressor.EncodeAll(body, nil), s.bound(id, head))
	if err != nil {
		return "", nil, failure.Errorf(failure.InvariantViolated, "encrypt artifact %s: %w", s.ref(id), err)
	}
	return id, append(head, sealed...), nil
}

// GetAs returns the last body stored under name, for any review. Errors are as for [Store.Get].
func (s *Store) GetAs(ctx context.Context, name string) ([]byte, error) {
	k, err := s.currentKeys()
	if err != nil {
		return nil, err
	}
	return s.Show(ctx, s.ref(k.id([]byte(named+name))))
}

// Pseudonym returns a keyed hash of a user. While the keyset is the same, so is the
// pseudonym.
func (s *Store) Pseudonym(user string) (string, error) {
	k, err := s.currentKeys()
	if err != nil {
		return "", err
	}
	return k.id([]byte("\x00user\x00" + user))[:pseudonymLen], nil
}

// pseudonymLen distinguishes the users of an installation.
const pseudonymLen = 16

// id returns the keyed hash of an artifact's identity.
func (k *keys) id(identity []byte) string {
	mac := hmac.New(sha256.New, k.ids)
	mac.Write(identity)
	return hex.EncodeToString(mac.Sum(nil))
}

// Get returns the bytes of ref for the review of. The error has class ARTIFACT_FOREIGN if
// ref is of another review or namespace, ARTIFACT_EXPIRED if the bytes have expired, and
// CONFIG_INVALID if they cannot be decrypted, because they were altered or their key was
// removed from the keyset too early.
func (s *Store) Get(ctx context.Context, of review.Owner, ref review.ArtifactRef) ([]byte, error) {
	id, sealed, err := s.load(ctx, ref)
	if err != nil {
		return nil, err
	}
	if head, _ := split(sealed); head != nil && !bytes.Equal(head, header(of)) {
		return nil, failure.Errorf(failure.ArtifactForeign, "read artifact %s: it is not of changelist %d version %d", ref, of.Changelist, of.Version)
	}
	return s.Open(id, sealed)
}

// Show returns the bytes of ref without a check of the review to which they belong. Errors are as
// for [Store.Get].
func (s *Store) Show(ctx context.Context, ref review.ArtifactRef) ([]byte, error) {
	id, sealed, err := s.load(ctx, ref)
	if err != nil {
		return nil, err
	}
	return s.Open(id, sealed)
}

func (s *Store) load(ctx context.Context, ref review.ArtifactRef) (id string, sealed []byte, err error) {
	ns, id, _ := strings.Cut(string(ref), ":")
	if ns != string(s.cfg.Namespace) {
		return "", nil, failure.Errorf(failure.ArtifactForeign, "read artifact %q: it is not of namespace %s", ref, s.cfg.Namespace)
	}
	if sealed, err = s.blobs.Blob(ctx, id); err != nil {
		return "", nil, fmt.Errorf("read artifact %s: %w", ref, err)
	}
	return id, sealed, nil
}

// Open returns the bytes of the stored form of an artifact. Errors are as for
// [Store.Get].
func (s *Store) Open(id string, sealed []byte) ([]byte, error) {
	ref := s.ref(id)
	k, err := s.currentKeys()
	if err != nil {
		return nil, err
	}
	head, encrypted := split(sealed)
	packed, err := k.seal.Decrypt(encrypted, s.bound(id, head))
	if err != nil {
		return nil, failure.Errorf(failure.ConfigInvalid,
			"decrypt artifact %s: it was altered or the keyset lacks its key: restore the key", ref)
	}
	body, err := s.decompressor.DecodeAll(packed, nil)
	if err != nil {
		return nil, failure.Errorf(failure.InvariantViolated, "decompress artifact %s: %w", ref, err)
	}
	return body, nil
}

func (s *Store) ref(id string) review.ArtifactRef {
	return review.ArtifactRef(string(s.cfg.Namespace) + ":" + id)
}

// bound returns the associated data of the encryption. A body that is moved to another
// id, namespace or review cannot be decrypted.
func (s *Store) bound(id string, head []byte) []byte {
	return slices.Concat([]byte(s.ref(id)), head)
}

// format is the first byte of a stored form: a build that stores another form gives it
// another number.
const format = 1

// headerLen is the length of the format, a changelist and a version.
const headerLen = 1 + 8 + 4

// header returns the clear text that precedes the ciphertext and names the owner. The database
// finds the artifacts of a changelist by it.
func header(of review.Owner) []byte {
	head := binary.BigEndian.AppendUint64([]byte{format}, uint64(of.Changelist)) //nolint:gosec // it is positive
	return binary.BigEndian.AppendUint32(head, uint32(of.Version))               //nolint:gosec // it is positive
}

// split divides a stored form into its header and ciphertext. What is not a stored form
// has no header, and cannot be decrypted.
func split(sealed []byte) (head, encrypted []byte) {
	if len(sealed) < headerLen || sealed[0] != format {
		return nil, sealed
	}
	return sealed[:headerLen], sealed[headerLen:]
}
