package artifact

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
)

// NewKeyset returns a keyset of one new key in Tink's JSON form, unencrypted. Store it
// where the other secrets are (security 9.3).
func NewKeyset() (secret.Value, error) {
	return addKey(keyset.NewManager())
}

// RotateKeyset returns old with a new primary key. The old keys still decrypt; remove them
// when the longest TTL has passed. Every reader must have the new keyset before a writer
// has it (security 9.3.5).
func RotateKeyset(old secret.Value) (secret.Value, error) {
	handle, err := parse(old)
	if err != nil {
		return secret.Value{}, err
	}
	return addKey(keyset.NewManagerFromHandle(handle))
}

func addKey(m *keyset.Manager) (secret.Value, error) {
	id, err := m.Add(aead.AES256GCMKeyTemplate())
	if err != nil {
		return secret.Value{}, fmt.Errorf("add key to keyset: %w", err)
	}
	if err := m.SetPrimary(id); err != nil {
		return secret.Value{}, fmt.Errorf("set primary key of keyset: %w", err)
	}
	handle, err := m.Handle()
	if err != nil {
		return secret.Value{}, fmt.Errorf("read keyset: %w", err)
	}
	var out bytes.Buffer
	if err := insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&out)); err != nil {
		return secret.Value{}, fmt.Errorf("encode keyset: %w", err)
	}
	return secret.New(out.String()), nil
}

// CheckKeyset returns an error of class CONFIG_INVALID unless ks can encrypt artifacts.
func CheckKeyset(ks secret.Value) error {
	_, err := open(ks)
	return err
}

// keys are the keys of a keyset.
type keys struct {
	of   secret.Value // the keyset
	seal tink.AEAD
	ids  []byte
}

// currentKeys returns the keys of the keyset, which may have been renewed.
func (s *Store) currentKeys() (*keys, error) {
	now := secret.New(s.keyset.Reveal())
	if k := s.keys.Load(); k != nil && k.of.Reveal() == now.Reveal() {
		return k, nil
	}
	seal, err := open(now)
	if err != nil {
		return nil, err
	}
	ids, err := hkdf.Key(sha256.New, []byte(now.Reveal()), nil, "criticizer artifact id "+string(s.ns), sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive key of artifact ids: %w", err)
	}
	k := &keys{now, seal, ids}
	s.keys.Store(k)
	return k, nil
}

// open returns the keyset's AEAD.
func open(ks secret.Value) (tink.AEAD, error) {
	handle, err := parse(ks)
	if err != nil {
		return nil, err
	}
	a, err := aead.New(handle)
	if err != nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "artifact keyset is not for authenticated encryption: create one with criticizer keyset")
	}
	return a, nil
}

// parse drops the parser's error: it may quote the keyset.
func parse(ks secret.Value) (*keyset.Handle, error) {
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(strings.NewReader(ks.Reveal())))
	if err != nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "artifact keyset is unset or not a Tink JSON keyset")
	}
	return handle, nil
}
