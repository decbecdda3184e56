package main

import (
	"strconv"
	"strings"
)

// userForm shows a user's form. Of a user that does not exist it shows the form
// that would make it, as the server does.
func (s *session) userForm(f flags, args []string) error {
	if !f.has("o") {
		s.out.say(noPermission)
		return nil
	}
	name := s.user()
	if len(args) > 0 {
		name = args[0]
	}
	u, err := s.depot.user(name)
	if err != nil {
		return err
	}
	if u == nil {
		u = &user{Name: name, Email: name + "@" + s.client(), FullName: name}
	}
	fields := []field{{"User", u.Name}, {"Email", u.Email}}
	if u.Update != 0 {
		fields = append(fields, field{"Update", formatTime(s.loc, dateTime, u.Update)}, field{"Access", formatTime(s.loc, dateTime, u.Access)})
	}
	fields = append(fields, field{"FullName", u.FullName}, field{"Type", "standard"}, field{"AuthMethod", "perforce"})
	for i, path := range u.Reviews {
		fields = append(fields, field{"Reviews" + strconv.Itoa(i), path})
	}
	s.form("A Perforce User Specification.", fields)
	return nil
}

// changeForm shows a changelist's form; only pending ones list their files.
func (s *session) changeForm(f flags, args []string) error {
	if !f.has("o") {
		s.out.say(noPermission)
		return nil
	}
	if len(args) == 0 {
		s.form("A Perforce Change Specification.", []field{
			{"Change", "new"}, {"Client", s.client()}, {"User", s.user()}, {"Status", "new"},
			{"Description", "<enter description here>\n"},
		})
		return nil
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 1 {
		s.out.say(badChange, args[0])
		return nil
	}
	c, err := s.visibleChange(n)
	if err != nil {
		return err
	}
	if c == nil {
		s.out.say(noSuchChange, "Change "+args[0])
		return nil
	}
	fields := []field{
		{"Change", args[0]}, {"Date", formatTime(s.loc, dateTime, c.Time)}, {"Client", c.Client}, {"User", c.User},
		{"Status", c.status()}, {"Type", c.changeType()}, {"Description", string(c.Desc)},
	}
	for i, r := range c.Opened {
		fields = append(fields, field{"Files" + strconv.Itoa(i), string(r.Path)})
	}
	s.form("A Perforce Change Specification.", fields)
	return nil
}

// form shows a form: as a record, or as the text that an editor would get.
func (s *session) form(title string, fields []field) {
	if s.out.tagged {
		s.out.record(fields)
		return
	}
	var b strings.Builder
	b.WriteString("# " + title + "\n")
	list := ""
	for _, f := range fields {
		name := strings.TrimRight(f.key, "0123456789")
		switch {
		case name != f.key && name == list:
			b.WriteString("\t" + f.value + "\n")
		case name != f.key || strings.Contains(f.value, "\n"):
			b.WriteString("\n" + name + ":\n\t" + strings.ReplaceAll(strings.TrimSuffix(f.value, "\n"), "\n", "\n\t") + "\n")
		default:
			b.WriteString("\n" + f.key + ":\t" + f.value + "\n")
		}
		list = name
	}
	s.out.info(0, b.String())
}
