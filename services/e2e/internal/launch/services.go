package launch

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
)

// member is one process of a service and where it listens.
type member struct {
	name            string
	grpc, http, ops string
}

// members of a service, each on addresses of its own.
func members(ctx context.Context, kind Kind, count int, free *ports) ([]member, error) {
	all := make([]member, count)
	for i := range all {
		m := &all[i]
		m.name = string(kind) + "-" + strconv.Itoa(i)
		for _, address := range []*string{&m.grpc, &m.http, &m.ops} {
			var err error
			if *address, err = free.address(ctx); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// services are the members of all services and what each needs to reach the
// others.
type services struct {
	cfg                                        Config
	network                                    *network
	taskStores, notifiers, executors, gateways []member
	// postgres and nats are URLs without links.
	postgres, nats string
	cursorKey      string
	// front's addresses as senders reach them.
	frontHTTP, frontGRPC string
}

func newServices(ctx context.Context, cfg Config, free *ports) (*services, error) {
	s := &services{cfg: cfg}
	for _, service := range []struct {
		kind  Kind
		count int
		of    *[]member
	}{
		{TaskStore, cfg.TaskStores, &s.taskStores},
		{Notifier, cfg.Notifiers, &s.notifiers},
		{Executor, cfg.Executors, &s.executors},
		{Gateway, cfg.Gateways, &s.gateways},
	} {
		var err error
		if *service.of, err = members(ctx, service.kind, service.count, free); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// programs are those of all services.
func (s *services) programs(ctx context.Context) ([]program, error) {
	var all []program
	for _, service := range []struct {
		kind     Kind
		members  []member
		settings func(ctx context.Context, m member) ([]string, error)
	}{
		{TaskStore, s.taskStores, s.taskStore},
		{Notifier, s.notifiers, s.notifier},
		{Executor, s.executors, s.executor},
		{Gateway, s.gateways, s.gateway},
	} {
		for _, m := range service.members {
			settings, err := service.settings(ctx, m)
			if err != nil {
				return nil, err
			}
			all = append(all, s.program(service.kind, m, settings))
		}
	}
	return all, nil
}

func (s *services) program(kind Kind, m member, settings []string) program {
	path := filepath.Join(s.cfg.Bin, "errand-"+string(kind))
	if kind == Executor {
		path = s.cfg.ExecutorProgram
	}
	common := []string{"--ops", m.ops, "--agents", s.cfg.AgentsFile, "--log-level", s.cfg.LogLevel.String()}
	env := append([]string{NameVariable + "=" + m.name, "ERRAND_CURSOR_KEY=" + s.cursorKey}, s.cfg.Env...)
	return program{
		name: m.name, kind: kind, path: path, args: append(common, settings...), env: env,
		ops: m.ops, ready: answers("http://" + m.ops + "/readyz"),
	}
}

func (s *services) taskStore(ctx context.Context, m member) ([]string, error) {
	database, err := s.network.url(ctx, m.name, string(Postgres), s.postgres)
	if err != nil {
		return nil, err
	}
	return s.withNATS(ctx, m, "--grpc", m.grpc, "--database-url", database)
}

func (s *services) notifier(ctx context.Context, m member) ([]string, error) {
	return s.withTaskStores(ctx, m, "--grpc", m.grpc)
}

func (s *services) executor(ctx context.Context, m member) ([]string, error) {
	return s.withTaskStores(ctx, m)
}

func (s *services) gateway(ctx context.Context, m member) ([]string, error) {
	notifiers, err := s.targets(ctx, m, s.notifiers)
	if err != nil {
		return nil, err
	}
	return s.withTaskStores(ctx, m, "--http", m.http, "--grpc", m.grpc, "--notifier", notifiers,
		"--public-url", "http://"+s.frontHTTP, "--public-grpc", s.frontGRPC)
}

func (s *services) withTaskStores(ctx context.Context, m member, settings ...string) ([]string, error) {
	stores, err := s.targets(ctx, m, s.taskStores)
	if err != nil {
		return nil, err
	}
	return s.withNATS(ctx, m, append(settings, "--taskstore", stores)...)
}

func (s *services) withNATS(ctx context.Context, m member, settings ...string) ([]string, error) {
	nats, err := s.network.url(ctx, m.name, string(NATS), s.nats)
	if err != nil {
		return nil, err
	}
	return append(settings, "--nats-url", nats), nil
}

// targets are where a process reaches the members of a service.
func (s *services) targets(ctx context.Context, client member, servers []member) (string, error) {
	addresses := make([]string, len(servers))
	for i, server := range servers {
		var err error
		if addresses[i], err = s.network.address(ctx, client.name, server.name, server.grpc); err != nil {
			return "", err
		}
	}
	return strings.Join(addresses, ","), nil
}

// reachable is an address that listens everywhere as a sender on this machine
// reaches it.
func reachable(listener net.Listener) string {
	address, isTCP := listener.Addr().(*net.TCPAddr)
	if !isTCP || !address.IP.IsUnspecified() {
		return listener.Addr().String()
	}
	return fmt.Sprintf("localhost:%d", address.Port)
}
