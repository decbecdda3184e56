// Command standin serves the model of the sample of docker-compose.yml on port 8026: a
// stand-in that finds the defects of the sample depot.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/criticizer/criticizer/llm/llmsim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	server := &http.Server{Addr: ":8026", Handler: llmsim.New(llmsim.Config{}), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	err := server.ListenAndServe()
	stop()
	if !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, "standin:", err)
		os.Exit(1)
	}
}
