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

// NewKeyset returns a keyset of one new key in Tink's JSON form, encrypted by kek. Store
// it where the other secrets are (security 9.3). Each namespace has its own: a process
// that holds one keyset opens nothing of the others.
func NewKeyset(kek KEK) (secret.Value, error) {
	return addKey(keyset.NewManager(), kek)
}

// RotateKeyset returns old with a new primary key, encrypted by kek even if old is in clear
// text. The old keys still decrypt; remove them with [PruneKeyset] when the longest TTL has
// passed. Every reader must have the new keyset before a writer has it (security 9.3.5).
func RotateKeyset(old secret.Value, kek KEK) (secret.Value, error) {
	handle, err := KEK{}.read(old)
	if err != nil {
		handle, err = kek.read(old)
	}
	if err != nil {
		return secret.Value{}, err
	}
	return addKey(keyset.NewManagerFromHandle(handle), kek)
}

// PruneKeyset returns ks with its primary key only.
func PruneKeyset(ks secret.Value, kek KEK) (secret.Value, error) {
	handle, err := kek.read(ks)
	if err != nil {
		return secret.Value{}, err
	}
	m := keyset.NewManagerFromHandle(handle)
	for _, key := range handle.KeysetInfo().GetKeyInfo() {
		if key.GetKeyId() == handle.KeysetInfo().GetPrimaryKeyId() {
			continue
		}
		if err := m.Delete(key.GetKeyId()); err != nil {
			return secret.Value{}, fmt.Errorf("remove key from keyset: %w", err)
		}
	}
	return written(m, kek)
}

func addKey(m *keyset.Manager, kek KEK) (secret.Value, error) {
	id, err := m.Add(aead.AES256GCMKeyTemplate())
	if err != nil {
		return secret.Value{}, fmt.Errorf("add key to keyset: %w", err)
	}
	if err := m.SetPrimary(id); err != nil {
		return secret.Value{}, fmt.Errorf("set primary key of keyset: %w", err)
	}
	return written(m, kek)
}

func written(m *keyset.Manager, kek KEK) (secret.Value, error) {
	handle, err := m.Handle()
	if err != nil {
		return secret.Value{}, fmt.Errorf("read keyset: %w", err)
	}
	return kek.write(handle)
}

// CheckKeyset returns an error unless ks can encrypt artifacts.
func CheckKeyset(ks secret.Value, kek KEK) error {
	_, err := openKeys(ks, kek, "")
	return err
}

type keys struct {
	of   string // the keyset, as written
	seal tink.AEAD
	ids  []byte // key of the ids
}

// currentKeys returns the keys of the keyset, which may have been renewed. If a renewed
// keyset cannot be opened, the keys before it stay in use.
func (s *Store) currentKeys() (*keys, error) {
	last, now := s.keys.Load(), s.cfg.Keyset
	if last != nil && last.of == now.Reveal() {
		return last, nil
	}
	k, err := openKeys(now, s.cfg.KEK, string(s.cfg.Namespace))
	if err != nil && last != nil {
		return last, nil
	}
	s.keys.Store(k)
	return k, err
}

// openKeys decrypts a keyset and derives the key of the ids of a namespace.
func openKeys(ks secret.Value, kek KEK, ns string) (*keys, error) {
	handle, err := kek.read(ks)
	if err != nil {
		return nil, err
	}
	seal, err := aead.New(handle)
	if err != nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "artifact keyset is not for authenticated encryption: create one with: criticizer keyset create DIR")
	}
	clear, err := KEK{}.write(handle)
	if err != nil {
		return nil, err
	}
	ids, err := hkdf.Key(sha256.New, []byte(clear.Reveal()), nil, "criticizer artifact id "+ns, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive key of artifact ids: %w", err)
	}
	return &keys{ks.Reveal(), seal, ids}, nil
}

// read decrypts a keyset. It drops the parser's error, which may quote the keyset.
func (k KEK) read(ks secret.Value) (*keyset.Handle, error) {
	from := keyset.NewJSONReader(strings.NewReader(ks.Reveal()))
	if k.URI == "" {
		handle, err := insecurecleartextkeyset.Read(from)
		if err != nil {
			return nil, failure.Errorf(failure.ConfigInvalid, "artifact keyset is unset, encrypted, or not a Tink JSON keyset")
		}
		return handle, nil
	}
	master, err := k.aead()
	if err != nil {
		return nil, err
	}
	handle, err := keyset.Read(from, master)
	if master.failed != nil {
		return nil, fmt.Errorf("decrypt artifact keyset: %w", master.failed)
	}
	if err != nil {
		return nil, failure.Errorf(failure.ConfigInvalid, "artifact keyset is unset, not a Tink JSON keyset, or not encrypted by artifacts.kek_uri")
	}
	return handle, nil
}

func (k KEK) write(handle *keyset.Handle) (secret.Value, error) {
	var out bytes.Buffer
	to := keyset.NewJSONWriter(&out)
	if k.URI == "" {
		if err := insecurecleartextkeyset.Write(handle, to); err != nil {
			return secret.Value{}, fmt.Errorf("encode keyset: %w", err)
		}
		return secret.New(out.String()), nil
	}
	master, err := k.aead()
	if err != nil {
		return secret.Value{}, err
	}
	if err := handle.Write(to, master); err != nil {
		return secret.Value{}, fmt.Errorf("encrypt artifact keyset: %w", err)
	}
	return secret.New(out.String()), nil
}
