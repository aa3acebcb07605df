package rpc

import (
	"net"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

// resolve turns a Target into what gRPC takes.
func resolve(target string) (string, []grpc.DialOption) {
	switch {
	case strings.Contains(target, ":///"):
		return target, nil
	case strings.Contains(target, ","):
		list := addressList(strings.Split(target, ","))
		return list.Scheme() + ":///" + target, []grpc.DialOption{grpc.WithResolvers(list)}
	default:
		return "dns:///" + target, nil
	}
}

// addressList resolves to addresses that are known, each a server of its own.
func addressList(addresses []string) *manual.Resolver {
	var state resolver.State
	for _, address := range addresses {
		address = strings.TrimSpace(address)
		// Which name the server's certificate has to be for.
		name, _, err := net.SplitHostPort(address)
		if err != nil {
			name = address
		}
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{
			Addresses: []resolver.Address{{Addr: address, ServerName: name}},
		})
	}
	list := manual.NewBuilderWithScheme("list")
	list.InitialState(state)
	return list
}
