package redaction

import (
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
)

func message(t *testing.T, key, s string) Message {
	t.Helper()
	p, err := New(Config{Key: secret.New("a key for tests, not a secret"), Emails: true})
	if err != nil {
		t.Fatal(err)
	}
	m, err := p.Message(key, s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const complaint = "Write to ann@corp.example, not to bob@corp.example. I said ann@corp.example!"

func TestMessageIsRestoredInAnyOrder(t *testing.T) {
	t.Parallel()
	m := message(t, "job", complaint)
	if strings.Contains(m.Text.String(), "@") {
		t.Fatalf("addresses were not masked: %s", m.Text)
	}
	words := likePlaceholder.FindAllString(m.Text.String(), -1)
	got, err := m.Restore("Please, " + words[1] + " is wrong and " + words[0] + " right.")
	if want := "Please, bob@corp.example is wrong and ann@corp.example right."; err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

// Restore needs the same placeholders as before when the raw text is redacted again.
func TestMessageIsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	one, two := message(t, "job", complaint), message(t, "job", complaint)
	if one.Text.String() != two.Text.String() {
		t.Errorf("%s is not %s", one.Text, two.Text)
	}
	if other := message(t, "another", complaint); other.Text.String() == one.Text.String() {
		t.Error("the same secret has the same placeholder in two messages")
	}
}

func TestSecretOfSeveralLinesIsRestoredWhole(t *testing.T) {
	t.Parallel()
	key := "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIEowIBAAKCAQEAr1nQ8c7b\nZ9mT2xWkP0aVdQ3sLh5f8uYe\n-----END RSA PRIVATE " + "KEY-----"
	m := message(t, "job", "my key is\n"+key+"\nkeep it")
	if strings.Contains(m.Text.String(), "MIIE") {
		t.Fatalf("the key was not masked: %s", m.Text)
	}
	got, err := m.Restore(strings.Replace(m.Text.String(), "keep it", "please keep it", 1))
	if err != nil || got != "my key is\n"+key+"\nplease keep it" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAnswerWithOtherPlaceholdersIsRejected(t *testing.T) {
	t.Parallel()
	m := message(t, "job", complaint)
	text := m.Text.String()
	ph := likePlaceholder.FindString(text)
	for name, answer := range map[string]string{
		"one is lost":            strings.ReplaceAll(text, ph, "Ann"),
		"all are lost":           "Please be kind.",
		"one is invented":        text + " [REDACTED:email:0000]",
		"one is spelt otherwise": text + " " + strings.ToLower(ph),
		"one has blanks":         text + " " + strings.Replace(ph, "[", "[ ", 1),
		"one is not closed":      text + " " + strings.TrimSuffix(ph, "]"),
		"one says nothing":       text + " [redacted]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := m.Restore(answer)
			if failure.ClassOf(err) != failure.SchemaInvalid || got != "" {
				t.Errorf("got %q, %v; want class %s", got, err, failure.SchemaInvalid)
			}
			if err != nil && strings.Contains(err.Error(), "Ann") {
				t.Errorf("the error quotes the answer: %v", err)
			}
		})
	}
}

func TestPlaceholderInTheRawTextStays(t *testing.T) {
	t.Parallel()
	text := "He sent me [REDACTED:email:beef] and [redacted], what is that?"
	m := message(t, "job", text)
	if got, err := m.Restore(text); err != nil || got != text {
		t.Errorf("got %q, %v", got, err)
	}
}
