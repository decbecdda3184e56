package telemetry_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/criticizer/criticizer/internal/telemetry"
)

func TestTerminal(t *testing.T) {
	tests := map[string]struct {
		format    string
		noColor   string
		want      string
		wantColor bool
	}{
		"auto is text in color":      {"auto", "", "INF", true},
		"NO_COLOR turns color off":   {"auto", "1", "INF", false},
		"text is in color":           {"text", "", "INF", true},
		"JSON is JSON on a terminal": {"json", "", `{"time"`, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NO_COLOR", tt.noColor)
			controller, terminal := openTerminal(t)
			telemetry.Logger(terminal, telemetry.Config{Scrub: scrub, Format: tt.format}).Info("fetched " + plain)
			buf := make([]byte, 4096)
			n, err := controller.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			out := string(buf[:n])
			if !strings.Contains(out, tt.want) || strings.Contains(out, "\x1b[") != tt.wantColor {
				t.Errorf("wrote %q, want %q in it, color: %t", out, tt.want, tt.wantColor)
			}
			if strings.Contains(out, plain) {
				t.Errorf("wrote the secret: %q", out)
			}
		})
	}
}

// openTerminal opens a pseudo-terminal. The controller reads what the terminal writes.
func openTerminal(t *testing.T) (controller, terminal *os.File) {
	t.Helper()
	controller, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("SKIPPED: no pseudo-terminal: %v", err)
	}
	t.Cleanup(func() { _ = controller.Close() })
	fd := int(controller.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return controller, terminal
}
