package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	serverVersion = "P4D/LINUX26X86_64/2023.2/2535420"
	serverDate    = "2024/01/05"
)

// info describes the server and what it takes the caller for.
func (s *session) info(f flags, _ []string) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("name this host: %w", err)
	}
	if s.out.tagged {
		s.out.record(s.infoRecord(host))
		return nil
	}
	s.out.say(infoUser, s.user())
	s.out.say(infoClient, s.client())
	s.out.say(infoHost, host)
	if !f.has("s") {
		s.out.say(infoUnknownClient)
	}
	s.out.say(infoDirectory, s.cwd())
	s.out.say(infoPeerAddress, "127.0.0.1:51666")
	s.out.say(infoClientAddress, "127.0.0.1")
	s.out.say(infoServerAddress, s.port())
	s.out.say(infoServerRoot, "/p4/root")
	s.out.say(infoServerDate, s.now().Format(dateTime), s.now().Format("-0700 MST"))
	s.out.say(infoServerUptime, "00:00:01")
	s.out.say(infoServerVersion, serverVersion, serverDate)
	s.out.say(infoServerID, s.serverID())
	s.out.say(infoServerServices, "standard")
	s.out.say(infoServerLicense, "none")
	s.out.say(infoCaseHandling, s.caseHandling())
	return nil
}

func (s *session) infoRecord(host string) []field {
	_, offset := s.now().Zone()
	record := []field{
		{"userName", s.user()}, {"clientName", "*unknown*"}, {"clientHost", host}, {"clientCwd", s.cwd()},
		{"clientCase", "sensitive"}, {"peerAddress", "127.0.0.1:51666"}, {"clientAddress", "127.0.0.1"},
		{"serverAddress", s.port()}, {"serverRoot", "/p4/root"},
		{"serverDate", s.now().Format(dateTime + " -0700 MST")}, {"tzoffset", strconv.Itoa(offset)},
		{"serverUptime", "00:00:01"}, {"serverVersion", serverVersion + " (" + serverDate + ")"},
		{"ServerID", s.serverID()}, {"serverServices", "standard"}, {"serverLicense", "none"},
		{"caseHandling", s.caseHandling()},
	}
	if s.settings["P4SIM_UNICODE"] != "" {
		record = append(record, field{"unicode", "enabled"})
	}
	return record
}

func (s *session) serverID() string     { return cmp.Or(s.settings["P4SIM_SERVER_ID"], "p4sim") }
func (s *session) caseHandling() string { return cmp.Or(s.settings["P4SIM_CASE"], "sensitive") }

func (s *session) now() time.Time { return time.Now().In(s.loc) }

// cwd is the directory that the caller claims to be in.
func (s *session) cwd() string {
	if dir := s.value("d"); dir != "" {
		return dir
	}
	return s.env["PWD"]
}

// ticketLife is how long any ticket is still good for.
const ticketLife = 12 * time.Hour

// login only tells the status of the ticket; logging in is refused.
func (s *session) login(f flags, _ []string) error {
	if !f.has("s") {
		s.out.say(noPermission)
		return nil
	}
	hours := int(ticketLife.Hours())
	s.report([]field{{"User", s.user()}, {"TicketExpiration", strconv.Itoa(hours * 3600)}},
		loginGoodTill, s.user(), strconv.Itoa(hours), "0")
	return nil
}

// counter reads one of the counters that follow the changes; others are 0.
func (s *session) counter(f flags, args []string) error {
	if len(f) > 0 || len(args) > 1 {
		s.out.say(noPermission)
		return nil
	}
	value := 0
	var err error
	switch args[0] {
	case "change":
		value = s.depot.lastChange()
	case "maxCommitChange":
		err = s.depot.eachChange(1, noBound.change, false, func(c *change) (bool, error) {
			value = c.Number
			return c.Pending, nil
		})
	}
	if err != nil {
		return err
	}
	s.report([]field{{"counter", args[0]}, {"value", strconv.Itoa(value)}}, counterGet, strconv.Itoa(value))
	return nil
}

// where maps //depot/... to the workspace, if there is one (P4SIM_ROOT).
func (s *session) where(_ flags, args []string) error {
	root := s.settings["P4SIM_ROOT"]
	if root == "" {
		s.out.say(noSuchDomain, "Client", s.client(), "client")
		return nil
	}
	for _, arg := range args {
		below, ok := strings.CutPrefix(arg, "//depot/")
		if !ok {
			s.out.say(notInView, arg)
			continue
		}
		mapped, local := "//"+s.client()+"/"+below, root+"/"+below
		s.report([]field{{"depotFile", arg}, {"clientFile", mapped}, {"path", local}}, whereData, "", arg, mapped, local)
	}
	return nil
}

// opened lists the files of pending changes, of all workspaces.
func (s *session) opened(f flags, args []string) error {
	found := false
	err := s.depot.eachChange(1, noBound.change, true, func(c *change) (bool, error) {
		if f.has("c") && f.value("c") != strconv.Itoa(c.Number) || !s.ownOrAll(f, c) {
			return true, nil
		}
		for i := range c.Opened {
			r := &c.Opened[i]
			if len(args) > 0 && !slices.ContainsFunc(args, func(p string) bool { return matches(p, string(r.Path)) }) {
				continue
			}
			found = true
			if err := s.sayOpened(r, c); err != nil {
				return false, err
			}
		}
		return !s.out.stopped, nil
	})
	if err == nil && !found {
		s.out.say(notOpenedAnywhere, strings.Join(args, " "))
	}
	return err
}

func (s *session) ownOrAll(f flags, c *change) bool { return f.has("a") || c.Client == s.client() }

func (s *session) sayOpened(r *revision, c *change) error {
	one, err := s.open(r)
	if err != nil {
		return err
	}
	s.report([]field{
		{"depotFile", string(r.Path)}, {"rev", revNumber(r)}, {"action", r.Action},
		{"change", strconv.Itoa(c.Number)}, {"type", one.kind}, {"user", c.User}, {"client", c.Client},
	}, openedOther, string(r.Path), hashRev(r), r.Action, "change "+strconv.Itoa(c.Number), one.kind, c.User, c.Client)
	return nil
}
