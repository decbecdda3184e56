package mail

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/draw"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
)

// picture is the mail in README.md.
const picture = "../../docs/mail.png"

// README.md shows the golden mail with findings: the picture names the digest of the page
// that Chromium rendered.
func TestPictureShowsTheGoldenMail(t *testing.T) {
	t.Parallel()
	_, _, html := parts(t, render(t, findingsReport()))
	html = strings.ReplaceAll(html, "\r\n", "\n") // as in the file
	source := fmt.Sprintf("Source\x00notify/mail/testdata/findings.html sha256:%x", sha256.Sum256([]byte(html)))
	if *update {
		testkit.NoError(t, os.WriteFile(picture, describe(t, photograph(t, html), source), 0o644))
	}
	data, err := os.ReadFile(picture)
	testkit.NoError(t, err)
	if !bytes.Contains(data, []byte("tEXt"+source)) {
		t.Errorf("%s is not the picture of the current mail: run go test ./notify/mail -update, which needs Chromium, and look at it", picture)
	}
}

// photograph returns a picture of the page at a width of 680, without the empty lines
// below the mail.
func photograph(t *testing.T, html string) image.Image {
	t.Helper()
	dir := t.TempDir()
	page, shot := filepath.Join(dir, "mail.html"), filepath.Join(dir, "mail.png")
	testkit.NoError(t, os.WriteFile(page, []byte(html), 0o600))
	cmd := exec.CommandContext(t.Context(), "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
		"--user-data-dir="+dir, "--window-size=680,4000", "--screenshot="+shot, "file://"+page)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("chromium (Debian package chromium): %v\n%s", err, out)
	}
	f, err := os.Open(shot)
	testkit.NoError(t, err)
	defer func() { _ = f.Close() }()
	whole, err := png.Decode(f)
	testkit.NoError(t, err)
	size := whole.Bounds()
	middle, background := size.Dx()/2, whole.At(size.Dx()/2, size.Max.Y-1)
	for size.Max.Y > 0 && whole.At(middle, size.Max.Y-1) == background {
		size.Max.Y--
	}
	size.Max.Y += 16 // as above the mail
	cut := image.NewRGBA(size)
	draw.Draw(cut, size, whole, image.Point{}, draw.Src)
	return cut
}

// describe encodes a picture with a text chunk (PNG 11.3.4.3) behind its header.
func describe(t *testing.T, picture image.Image, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	testkit.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, picture))
	const header = 8 + 25 // signature and IHDR
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	chunk = append(chunk, "tEXt"+text...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
	return bytes.Join([][]byte{out.Bytes()[:header], chunk, out.Bytes()[header:]}, nil)
}
