package review

import (
	"bytes"
	"compress/flate"
	"io"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
)

// A whole text is bounded on both ways: a few bytes can decompress to any number.
func TestWholeIsBounded(t *testing.T) {
	t.Parallel()
	const text = "int main(void);\r\nÄ\xff"
	if got, err := Compress(text).Text(); got != text || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	long := strings.Repeat("a", MaxWhole+1)
	if Compress(long) != nil {
		t.Error("a text over the limit is compressed")
	}
	var bomb bytes.Buffer
	w, err := flate.NewWriter(&bomb, flate.BestSpeed)
	testkit.NoError(t, err)
	if _, err := io.WriteString(w, long); err != nil {
		t.Fatal(err)
	}
	testkit.NoError(t, w.Close())
	for name, whole := range map[string]Whole{"a bomb": bomb.Bytes(), "another form": Whole("text"), "cut": Compress(text)[:5]} {
		if _, err := whole.Text(); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
